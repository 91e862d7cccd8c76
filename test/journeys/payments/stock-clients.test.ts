import { describe, expect, test } from "vitest";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";
import { STOCK_CLIENTS } from "../../support/sessions/agents.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

describe("five stock clients pay /test/basic", () => {
  test.each(STOCK_CLIENTS.map((client, index) => ({ ...client, index })))(
    "$name pays and receives the certificate of what settled",
    async ({ post, version, index }) => {
      const account = devAccount(index);
      const wallet = account.address.toLowerCase();
      const before = await chain.usdcBalance(PAY_TO);
      const { status, body } = await post(`${service.url}/test/basic`, account);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        conformance: true,
        product: "basic",
        verdict: "pass",
        level: "Conformant",
        checks: { paid: "pass" },
        wallet,
        detected: {
          exact_amount: true,
          recipient_match: true,
          network_match: true,
          network: "base",
          asset: "USDC",
          protocol_version: version,
        },
        cert_url: `${service.url}/cert/${body.id}`,
        badge_url: `${service.url}/badge/${body.id}.svg`,
        settlement: { network: "eip155:8453", amount: "250000", amount_usd: "0.25", pay_to: PAY_TO },
      });
      expect(await chain.usdcBalance(PAY_TO)).toBe(before + 250_000n);
      expect(await chain.usdcBalance(account.address)).toBe(10_000_000_000n - 250_000n);
      const record = await (await fetch(String(body.cert_url))).json();
      expect(record).toMatchObject({ id: body.id, verdict: "pass", fresh: true, settlement: body.settlement });
      const verification = await (await fetch(`${service.url}/verify?wallet=${wallet}`)).json();
      expect(verification).toMatchObject({
        wallet,
        tested: true,
        verified: true,
        capabilities: { can_pay: { tested: true, result: "pass", fresh: true } },
      });
    },
  );
});
