import { expect, test } from "vitest";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";
import { STOCK_CLIENTS } from "../../support/sessions/agents.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, jobs: false }));

test.each(STOCK_CLIENTS.map((client, index) => ({ ...client, index })))(
  "$name pays and receives its certificate",
  async ({ post, version, index }) => {
    const account = devAccount(index);
    const wallet = account.address.toLowerCase();
    const before = await chain.usdcBalance(PAY_TO);
    const { status, body } = await post(`${service.url}/test/basic`, account);
    expect(status).toBe(200);
    expect(body).toMatchObject({ verdict: "pass", wallet, detected: { protocol_version: version } });
    expect(await chain.usdcBalance(PAY_TO)).toBe(before + PRICES.basic);
    expect(await chain.usdcBalance(account.address)).toBe(10_000_000_000n - PRICES.basic);
  },
);
