import { afterEach, describe, expect, test } from "vitest";
import { samplesOf } from "../../../api/operations/series.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { connectOwner } from "../../support/service/database.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

/** Circle's USDC while its issuer pauses it or blacklists the receiving address. */

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const owner = await forFile(connectOwner(service.database));
const url = `${service.url}/test/basic`;
const look = () => service.runJob("usdc base");

afterEach(async () => {
  await chain.unpause();
  await chain.unblacklist(PAY_TO);
});

describe.each([
  {
    name: "USDC is paused",
    begin: () => chain.pause(),
    end: () => chain.unpause(),
    cause: /^USDC on Base is paused by its issuer, so no payment can settle\./,
    shown: { network: "eip155:8453", ok: false, paused: true, receiver_blacklisted: false },
  },
  {
    name: "the receiving address is on USDC's blacklist",
    begin: () => chain.blacklist(PAY_TO),
    end: () => chain.unblacklist(PAY_TO),
    cause: /^USDC on Base refuses to pay the service's receiving address, .* blacklist/,
    shown: { network: "eip155:8453", ok: false, paused: false, receiver_blacklisted: true },
  },
])("$name", ({ begin, end, cause, shown }) => {
  test("Paid routes return 503 with the cause and store nothing, /status reports the cause, and results are still replayed", async () => {
    const [before, during] = await Promise.all([newPayer(chain), newPayer(chain)]);
    const [paid, signed] = await Promise.all([signPayment(before), signPayment(during)]);
    expect((await post(url, v2(paid))).status).toBe(200);
    await begin();
    await look();

    for (const answer of [await post(url, {}), await post(url, v2(signed))]) {
      expectProblem(answer, 503, "not_available");
      expect(answer.body.detail).toMatch(cause);
    }
    const stored = "SELECT FROM payment WHERE payer = $1";
    expect((await owner.query(stored, [Buffer.from(during.address.slice(2), "hex")])).rowCount).toBe(0);
    const again = await post(url, v2(paid));
    expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    // One reading is cached for two seconds.
    const status = async () => (await send(`${service.url}/status`)).body;
    await expect.poll(status).toMatchObject({ ok: false, usdc: expect.arrayContaining([shown]) });
    expect(service.logged.some((line) => line.includes("payments are paused: USDC on Base"))).toBe(true);

    await end();
    await look();
    expectPaymentRequired(await post(url, {}));
    expect(await settlements(chain, during.address)).toEqual([]);
    expect((await post(url, v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
  });
});

test("A paused network has the metric value 0, and an unknown state has no sample", () => {
  const usdc = [
    { network: "eip155:8453", ok: false, paused: true, receiver_blacklisted: false },
    { network: "eip155:84532", ok: true, paused: null, receiver_blacklisted: null },
  ] satisfies typeof STATUS.usdc;
  const found = samplesOf({ ...STATUS, usdc }, { backlog: null, observationSeconds: null, jobs: [] }).filter(
    ({ labels }) => labels.part?.startsWith("usdc"),
  );
  expect(found).toEqual([{ name: "trust_part_ok", labels: { part: "usdc" }, value: 0 }]);
});
