import { decodePaymentResponseHeader } from "@x402/core/http";
import { type Hex, zeroHash } from "viem";
import { describe, expect, test } from "vitest";
import { operatorAbi } from "../../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import {
  codeIn,
  deliverThrough,
  openOperator,
  signedFor,
  stockAxios,
  stockFetch,
  type WirePayment,
} from "../../support/escrow/auth-capture.ts";
import { deployEscrow, hold, newMerchant, PATIENT, statusOf } from "../../support/escrow/contract.ts";
import { EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { encodeHeader } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { challengeOf, post, send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const [escrow, operator] = [await deployEscrow(chain), await openOperator(chain)];
const addresses = [escrow.address, operator.address];
const service = await forFile(startService({ chain, config: { escrowAddresses: addresses } }));
const url = `${service.url}/escrow/demo`;

const pay = (payment: WirePayment) => post(url, { "PAYMENT-SIGNATURE": encodeHeader(payment) });
const PRICE = PRICES.demo;

describe("auth-capture at the escrow demo", () => {
  test("The demo offers the scheme of stock clients first and the draft's scheme second", async () => {
    const { accepts } = challengeOf(await post(url));
    expect(accepts.map(({ scheme }) => scheme)).toEqual(["auth-capture", "commerce"]);
    expect(accepts[0]).toMatchObject({
      amount: String(PRICE),
      extra: {
        captureAuthorizer: expect.stringMatching(new RegExp(operator.address, "i")),
        authCaptureEscrow: COMMERCE_PAYMENTS.escrow,
        captureMode: "deferred",
      },
    });
  });

  test("The stock fetch client buys: the payment is held, evaluated, and captured, and a replay gets the same bytes", async () => {
    const buyer = await newPayer(chain, 1_000_000n);
    const sent: string[] = [];
    const { merchant } = (await send(url)).body as { merchant: Hex };
    const before = await chain.usdcBalance(merchant);
    const response = await stockFetch(buyer, sent)(url, { method: "POST" });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringMatching(/"status":"released"/)]);
    const served = JSON.parse(text);
    expect(served.escrow).toMatchObject({ contract: operator.address, evaluation: { decision: "release" } });
    expect(decodePaymentResponseHeader(response.headers.get("payment-response") ?? "")).toEqual({
      success: true,
      transaction: served.escrow.hold.transaction,
      network: "eip155:8453",
      payer: buyer.address.toLowerCase(),
      amount: String(PRICE),
      extensions: { "offer-receipt": { info: { receipt: expect.anything() } } },
    });
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n - PRICE);
    expect((await chain.usdcBalance(merchant)) - before).toBe(99_000n);
    const again = await post(url, { "PAYMENT-SIGNATURE": sent.at(-1) ?? "" });
    expect([again.status, again.headers.get("x-idempotent-replay"), again.text]).toEqual([200, "true", text]);
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n - PRICE);
  });

  test("The stock axios client buys", async () => {
    const buyer = await newPayer(chain, 1_000_000n);
    const { status, data } = await stockAxios(buyer).post(url);
    expect([status, data]).toMatchObject([200, { item: "espresso", escrow: { status: "released" } }]);
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n - PRICE);
  });
});

describe("rejected payment", () => {
  const extra = (change: object) => (payment: WirePayment) => ({
    ...payment,
    accepted: { ...payment.accepted, extra: { ...payment.accepted.extra, ...change } },
  });
  const accepted = (change: object) => (payment: WirePayment) => ({
    ...payment,
    accepted: { ...payment.accepted, ...change },
  });
  const authorization = (change: object) => (payment: WirePayment) => ({
    ...payment,
    payload: { ...payment.payload, authorization: { ...payment.payload.authorization, ...change } },
  });
  const payload = (change: object) => (payment: WirePayment) => ({
    ...payment,
    payload: { ...payment.payload, ...change },
  });
  const now = () => Math.floor(Date.now() / 1000);
  const REFUSED = [
    ["payload_format", 400, payload({ salt: undefined })],
    ["payload_format", 400, accepted({ payTo: undefined })],
    ["payload_format", 400, authorization({ value: String(2n ** 120n) })],
    ["payload_method_mismatch", 400, payload({ authorization: undefined, permit2Authorization: {} })],
    ["scheme", 402, accepted({ scheme: "exact" })],
    ["network_mismatch", 402, accepted({ network: "eip155:84532" })],
    ["extra", 402, extra({ captureAuthorizer: devAccount(7).address })],
    ["extra", 402, extra({ captureDeadline: undefined })],
    ["extra", 402, accepted({ extra: undefined })],
    ["deadline_ordering", 402, (one: WirePayment) => extra({ refundDeadline: now() + 80_000 })(one)],
    ["authorization_not_yet_valid", 402, (one: WirePayment) => authorization({ validAfter: `${now() + 90}` })(one)],
    ["token_collector_mismatch", 402, authorization({ to: devAccount(7).address })],
    ["amount_mismatch", 402, authorization({ value: "1" })],
    ["nonce_mismatch", 402, accepted({ payTo: devAccount(7).address })],
    ["nonce_mismatch", 402, payload({ salt: zeroHash })],
    ["nonce_mismatch", 402, authorization({ from: devAccount(7).address, nonce: zeroHash })],
    ["signature", 402, payload({ signature: `0x${"12".repeat(64)}1b` })],
    ["signature", 402, authorization({ from: devAccount(7).address })],
  ] as const;

  test("Every invalid payment gets the scheme's error code and moves nothing, and the honest one then buys", async () => {
    const buyer = await newPayer(chain, 1_000_000n);
    const honest = await signedFor(url, buyer);
    for (const [index, [code, status, change]] of REFUSED.entries()) {
      const answer = await pay((change as (payment: WirePayment) => WirePayment)(honest));
      expect([index, answer.status, codeIn(answer)]).toEqual([index, status, code]);
    }
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
    expect((await pay(honest)).status).toBe(200);
  });

  test("An insufficient balance and an expired authorization have codes as well", async () => {
    const poor = await newPayer(chain, PRICE - 1n);
    expect(codeIn(await pay(await signedFor(url, poor)))).toBe("insufficient_balance");
    const buyer = await newPayer(chain, 1_000_000n);
    const stale = await signedFor(url, buyer, { maxTimeoutSeconds: 5 });
    expect(codeIn(await pay(stale))).toBe("authorization_expired");
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  });
});

test("If a stranger submits the same signature first, the payment still buys, with one hold and one result", async () => {
  const buyer = await newPayer(chain, 1_000_000n);
  const payment = await signedFor(url, buyer);
  const { authorization, signature, salt } = payment.payload;
  const { extra, payTo } = payment.accepted;
  const info = {
    operator: operator.address,
    payer: buyer.address,
    receiver: payTo as Hex,
    token: chain.network.usdc.address,
    maxAmount: PRICE,
    preApprovalExpiry: Number(authorization.validBefore),
    authorizationExpiry: Number(extra.captureDeadline),
    refundExpiry: Number(extra.refundDeadline),
    minFeeBps: 100,
    maxFeeBps: 100,
    feeReceiver: extra.feeRecipient as Hex,
    salt: BigInt(salt),
  };
  const transaction = await chain.client.writeContract({
    account: devAccount(7),
    address: operator.address,
    abi: operatorAbi,
    functionName: "authorize",
    args: [info, PRICE, COMMERCE_PAYMENTS.collector, signature],
  });
  await chain.client.waitForTransactionReceipt({ hash: transaction });
  const answer = await pay(payment);
  expect([answer.status, answer.body]).toMatchObject([200, { escrow: { status: "released", hold: { transaction } } }]);
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n - PRICE);
});

describe("merchant's delivery over the operator", () => {
  const scene = { chain, escrow: operator };

  test("A good delivery is captured, and one without content is voided and fully refunded", async () => {
    const merchant = newMerchant();
    const [good, bad] = [await hold(scene, merchant.address), await hold(scene, merchant.address)];
    expect((await deliverThrough(service, operator, { merchant, ...good, ...GOOD })).body).toMatchObject({
      decision: "release",
    });
    expect((await deliverThrough(service, operator, { merchant, ...bad, ...EMPTY })).body).toMatchObject({
      decision: "refund",
    });
    await expect.poll(() => statusOf(scene, good), PATIENT).toBe("released");
    await expect.poll(() => statusOf(scene, bad), PATIENT).toBe("refunded");
    expect(await chain.usdcBalance(bad.buyer.address)).toBe(10_000_000n);
    expect(await chain.usdcBalance(merchant.address)).toBe(990_000n);
  });

  test("A signature for the escrow is not valid for the operator", async () => {
    const merchant = newMerchant();
    const held = await hold(scene, merchant.address);
    const answer = await deliverThrough(service, escrow, { merchant, ...held, ...GOOD });
    expectProblem(answer, 403, "not_the_merchant");
    expect(await statusOf(scene, held)).toBe("held");
  });
});
