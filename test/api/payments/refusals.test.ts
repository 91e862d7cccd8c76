import type { LocalAccount } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { samplesOf } from "../../../api/operations/series.ts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import {
  diagnosticOf,
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../support/payments/expectations.ts";
import { broadcast, chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { acceptedOf, post, send, v1, v2 } from "../../support/payments/requests.ts";
import { BASE, newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import { connectOwner } from "../../support/service/database.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const SEPOLIA = NETWORKS["eip155:84532"];
const SOMEBODY = devAccount(8).address;

let payer: LocalAccount;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = () => `${service.url}/test/basic`;

beforeEach(async () => {
  payer = await newPayer(chain);
});

/** Checks that the payment is refused with 402 for this reason and charges nothing. Returns the diagnostic. */
async function expectRefused(headers: Record<string, string>, why: RegExp): Promise<unknown> {
  const answer = await post(basic(), headers);
  expect(expectPaymentRequired(answer)).toMatch(why);
  await nothingCharged(chain, payer);
  return diagnosticOf(answer);
}

const inAMinute = expect.toSatisfy((seconds: number) => seconds > 30, "about a minute");

describe("Signed terms", () => {
  test.each<[string, () => Partial<Authorization>, RegExp, string, object?]>([
    ["one unit too little", () => ({ value: PRICES.basic - 1n }), /for exactly 250000/, "authorization_value_mismatch"],
    ["a window that is over", () => ({ validBefore: unixNow() - 1n }), /expired/, "authorization_valid_before"],
    [
      "a window that has not begun",
      () => ({ validAfter: unixNow() + 60n }),
      /not valid until/,
      "authorization_valid_after",
      { retry: "same", after: inAMinute },
    ],
  ])("An authorization with %s gets 402 with x402's code in both versions", async (...[, fields, why, code, more]) => {
    const signed = await signPayment(payer, fields());
    const diagnostic = { code: `invalid_exact_evm_payload_${code}`, retry: "new", ...more };
    expect(await expectRefused(v2(signed), why)).toEqual(diagnostic);
    expect(await expectRefused(v1(signed), why)).toEqual(diagnostic);
  });

  test("An authorization for another receiver gets 402 with x402's code", async () => {
    const diagnostic = await expectRefused(v2(await signPayment(payer, { to: SOMEBODY })), /it must pay 0x0+c0ffee01/);
    expect(diagnostic).toEqual({ code: "invalid_exact_evm_recipient_mismatch", retry: "new" });
  });

  test("For a wrong signature, the error names the recovered signer, the payer, and the domain", async () => {
    const other = await newPayer(chain);
    const { authorization } = await signPayment(payer);
    const { signature } = await signPayment(other, authorization);
    const [signer, wallet] = [other, payer].map(({ address }) => address.toLowerCase());
    const domain = `name "USD Coin", version "2", chainId 8453, verifyingContract ${BASE.usdc.address}`;
    const why = new RegExp(`${signer} was recovered .* the payer is ${wallet}.*${domain}`);
    const diagnostic = { code: "invalid_exact_evm_signature", retry: "new" };
    expect(await expectRefused(v2({ authorization, signature }), why)).toEqual(diagnostic);
    const nonsense = v2({ authorization, signature: `0x${"00".repeat(64)}1b` });
    expect(await expectRefused(nonsense, /no account can be recovered/)).toEqual(diagnostic);
  });

  test("The signed terms decide, and a contradicting `accepted` object gets 402", async () => {
    const signed = await signPayment(payer);
    const honest = acceptedOf(signed);
    const claims: Partial<typeof honest>[] = [
      { amount: String(PRICES.suite) },
      { payTo: SOMEBODY },
      { asset: SEPOLIA.usdc.address },
      { network: SEPOLIA.id },
      { scheme: "upto" },
    ];
    for (const accepted of claims) await expectRefused(v2(signed, { accepted }), /claims/);
    const elsewhere = await signPayment(payer, { to: SOMEBODY });
    await expectRefused(v2(elsewhere, { accepted: { payTo: PAY_TO } }), /claims to pay/);
    // A wrong claim is not stored. The same authorization is accepted with the correct one.
    expect((await post(basic(), v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
  });
});

describe("Payments that the token contract would refuse", () => {
  test("A payer without enough USDC gets 402, that authorization stays refused, and a new one is accepted", async () => {
    payer = await newPayer(chain, PRICES.basic - 1n);
    const signed = await signPayment(payer);
    const diagnostic = await expectRefused(v2(signed), /too low.* has 0\.249999 USDC, and the price is 0\.25 USDC/);
    expect(diagnostic).toEqual({ code: "insufficient_funds", retry: "new" });
    await chain.fund(payer.address, 1n);
    await expectRefused(v2(signed), /will not be submitted again/);
    const fresh = await signPayment(payer);
    expect((await post(basic(), v2(fresh))).status).toBe(200);
    await chargedOnce(chain, fresh);
  });

  test("A payment while USDC is paused gets 402 and stays refused, and a new signature works afterwards", async () => {
    const signed = await signPayment(payer);
    await chain.pause();
    try {
      await expectRefused(v2(signed), /paused/);
    } finally {
      await chain.unpause();
    }
    await expectRefused(v2(signed), /will not be submitted again/);
    const fresh = await signPayment(payer);
    expect((await post(basic(), v2(fresh))).status).toBe(200);
    await chargedOnce(chain, fresh);
  });

  test("A payer blacklisted by Circle gets 402", async () => {
    await chain.blacklist(payer.address);
    await expectRefused(v2(await signPayment(payer)), /blacklisted/);
  });

  test("An authorization whose nonce was spent on another payment gets 402", async () => {
    const elsewhere = await signPayment(payer, { to: SOMEBODY });
    await broadcast(chain, elsewhere);
    const { nonce } = elsewhere.authorization;
    await expectRefused(v2(await signPayment(payer, { nonce })), /used or canceled/);
  });
});

test("A 503 tells the client when to send the same request again", async () => {
  const signed = await signPayment(payer, { value: PRICES.score });
  const answer = await post(`${service.url}/score`, v2(signed), JSON.stringify({ wallet: SOMEBODY }));
  expectProblem(answer, 503, "not_available");
  expect(answer.body.diagnostic).toEqual({ code: "not_available", retry: "same", after: 5 });
});

describe("An authorization broadcast by a stranger", () => {
  test("An authorization that was broadcast before it arrives is fulfilled once and not charged again", async () => {
    const signed = await signPayment(payer);
    const transaction = await broadcast(chain, signed);
    const first = await post(basic(), v2(signed));
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ wallet: payer.address.toLowerCase(), settlement: { transaction } });
    const again = await post(basic(), v2(signed));
    expect([again.text, again.headers.get("x-idempotent-replay")]).toEqual([first.text, "true"]);
    await chargedOnce(chain, signed);
  });
});

test("No response, log line, or database row contains a plaintext signature", () => expectNoSignatureAnywhere(service));

describe("Circle's USDC while its issuer bars payments", async () => {
  /** Circle's USDC while its issuer pauses it or blacklists the receiving address. */

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
});
