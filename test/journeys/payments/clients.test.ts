import { describe, expect, test } from "vitest";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { MOST_HEADER_BYTES, measured } from "../../support/nginx.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, challengeOf, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";
import { STOCK_CLIENTS } from "../../support/sessions/agents.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, jobs: false }));
const basic = `${service.url}/test/basic`;

/** The diagnostic extension of a 402. The header has the same one, except for errors that do not fit. */
function diagnosticOf(answer: Answer) {
  const { errors: _, ...code } = { ...(answer.body.extensions as { diagnostic: Record<string, unknown> }).diagnostic };
  expect(challengeOf(answer).extensions?.diagnostic).toMatchObject(code);
  return (answer.body.extensions as { diagnostic: unknown }).diagnostic;
}

describe("diagnostics of a rejected payment", () => {
  test("For a wrong signature, the error names the recovered signer, the payer, and the domain", async () => {
    const [payer, other] = [await newPayer(chain), await newPayer(chain)];
    const { authorization } = await signPayment(payer);
    const { signature } = await signPayment(other, { ...authorization, from: other.address });
    const forged = { authorization, signature: (await signPayment(other, authorization)).signature };
    const answer = await post(basic, v2(forged));
    const error = expectPaymentRequired(answer);
    expect(error).toContain(`${other.address.toLowerCase()} was recovered`);
    expect(error).toContain(`the payer is ${payer.address.toLowerCase()}`);
    expect(error).toContain(
      'name "USD Coin", version "2", chainId 8453, verifyingContract 0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    );
    expect(diagnosticOf(answer)).toEqual({ code: "invalid_exact_evm_signature", retry: "new" });
    expect(expectPaymentRequired(await post(basic, v2({ authorization, signature })))).toMatch(/was recovered/);
    const nonsense = await post(basic, v2({ authorization, signature: `0x${"00".repeat(64)}1b` }));
    expect(expectPaymentRequired(nonsense)).toMatch(/no account can be recovered/);
    await nothingCharged(chain, payer);
  });

  test("For insufficient USDC, the error names the balance and the price", async () => {
    const payer = await newPayer(chain, 249_999n);
    const answer = await post(basic, v2(await signPayment(payer)));
    expect(expectPaymentRequired(answer)).toMatch(/has 0\.249999 USDC, and the price is 0\.25 USDC/);
    expect(diagnosticOf(answer)).toEqual({ code: "insufficient_funds", retry: "new" });
  });

  test.each<[string, Parameters<typeof signPayment>[1], string]>([
    ["another amount", { value: 1n }, "invalid_exact_evm_payload_authorization_value_mismatch"],
    ["another receiver", { to: `0x${"77".repeat(20)}` }, "invalid_exact_evm_recipient_mismatch"],
    ["a window that is over", { validBefore: unixNow() - 1n }, "invalid_exact_evm_payload_authorization_valid_before"],
  ])("A payment with %s gets x402's error code", async (_, fields, code) => {
    const answer = await post(basic, v2(await signPayment(await newPayer(chain), fields)));
    expectPaymentRequired(answer);
    expect(diagnosticOf(answer)).toEqual({ code, retry: "new" });
  });

  test("An authorization whose window has not begun can be sent again later", async () => {
    const answer = await post(basic, v2(await signPayment(await newPayer(chain), { validAfter: unixNow() + 60n })));
    expectPaymentRequired(answer);
    const diagnostic = diagnosticOf(answer) as { after: number };
    expect(diagnostic).toMatchObject({ code: "invalid_exact_evm_payload_authorization_valid_after", retry: "same" });
    expect(diagnostic.after).toBeGreaterThan(30);
  });

  test("A 503 tells the client when to send the same request again", async () => {
    const body = JSON.stringify({ wallet: `0x${"11".repeat(20)}` });
    const answer = await post(
      `${service.url}/score`,
      v2(await signPayment(await newPayer(chain), { value: PRICES.score })),
      body,
    );
    expectProblem(answer, 503, "not_available");
    expect(answer.body.diagnostic).toEqual({ code: "not_available", retry: "same", after: 5 });
  });
});

describe("body that would be rejected", () => {
  const claim = { category: "taste", conditions: {}, parties: { payer: "0x1", payee: "0x2" } };

  test.each<[string, string, string, RegExp]>([
    ["/score", "{}", "malformed_request", /^This body would be refused, and nothing charged: wallet: /],
    ["/score", '{"wallet":"0x12"}', "malformed_request", /wallet: expected a wallet: 0x and 40 hex digits/],
    ["/score", "{", "malformed_request", /The body is not JSON/],
    ["/score/batch", '{"wallets":[]}', "unacceptable", /wallets: expected 1 to 25 wallets/],
    ["/arbiter/verify", JSON.stringify(claim), "malformed_request", /parties/],
    ["/score/batch", JSON.stringify({ wallets: Array(400).fill("x") }), "malformed_request", /and 397 more/],
  ])("The 402 of %s starts by rejecting the body %s", async (...[path, body, code, why]) => {
    const answer = await post(service.url + path, {}, body);
    expect([answer.status, answer.body.x402Version]).toEqual([402, 1]);
    expect(answer.body.error).toMatch(why);
    expect(answer.body.error).toMatch(/^This body would be refused/);
    expect(challengeOf(answer).error).toMatch(/^This body would be refused/);
    expect(challengeOf(answer).accepts).toHaveLength(1);
    expect(diagnosticOf(answer)).toMatchObject({
      ...{ code, retry: "never" },
      errors: expect.arrayContaining([{ path: expect.any(String), message: expect.any(String) }]),
    });
    const { headerBytes } = await measured(service.url + path, { method: "POST", body });
    expect(headerBytes).toBeLessThan(MOST_HEADER_BYTES);
  });
});

describe("stock clients at POST /test/basic", () => {
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
});
