import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { expect, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { EscrowScheme, paymentId } from "../../../packages/escrow/src/index.ts";
import { selfRefund } from "../../../packages/escrow/src/self-refund.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode } from "../../support/chain/nodes.ts";
import { type Fault, refuse } from "../../support/chain/rpc.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { encodeHeader, presentedIn } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { challengeOf, post, send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, config: { escrowAddresses: [escrow.address], rpcUrls } }));
const url = `${service.url}/escrow/demo`;

interface Served {
  readonly item: string;
  readonly escrow: {
    readonly status: string;
    readonly hold: { readonly transaction: `0x${string}` };
    readonly evaluation: { readonly decision: string; readonly record: string; readonly record_url: string };
    readonly release: { readonly transaction: `0x${string}` };
  };
}

test("An agent with the stock client buys an espresso: the payment is held, evaluated, and released on chain", async () => {
  const buyer = await newPayer(chain, 1_000_000n);
  const merchant = (await send(url)).body.merchant as `0x${string}`;
  const sent: string[] = [];
  const watched: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    sent.push(request.headers.get("payment-signature") ?? "");
    return fetch(request);
  };
  const client = new x402Client().register("eip155:*", new EscrowScheme(buyer));
  const response = await wrapFetchWithPayment(watched, client)(url, { method: "POST" });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  const served = JSON.parse(text) as Served;
  expect(served).toMatchObject({
    item: "espresso",
    escrow: { status: "released", evaluation: { decision: "release" } },
  });
  for (const { transaction } of [served.escrow.hold, served.escrow.release])
    expect((await chain.client.getTransactionReceipt({ hash: transaction })).status).toBe("success");
  expect(served.escrow.hold.transaction).not.toBe(served.escrow.release.transaction);
  expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
  expect(await chain.usdcBalance(merchant)).toBe(99_000n);
  const record = await send(served.escrow.evaluation.record_url, { headers: { accept: "application/json" } });
  expect(record.body).toMatchObject({ decision: "release", rule: "delivered", merchant, service_is: "merchant" });

  const again = await post(url, { "PAYMENT-SIGNATURE": sent.at(-1) ?? "" });
  expect([again.status, again.headers.get("x-idempotent-replay"), again.text]).toEqual([200, "true", text]);
  expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
});

test("Concurrent copies of one header yield one hold, one release, and one response", async () => {
  const buyer = await newPayer(chain, 1_000_000n);
  const unpaid = await post(url);
  const scheme = new EscrowScheme(buyer);
  const header = await paid(scheme, unpaid);
  const answers = await Promise.all(Array.from({ length: 5 }, () => post(url, { "PAYMENT-SIGNATURE": header })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
});

async function paid(scheme: EscrowScheme, unpaid: Awaited<ReturnType<typeof post>>): Promise<string> {
  const required = challengeOf(unpaid);
  const client = new x402Client().register("eip155:*", scheme);
  return Buffer.from(JSON.stringify(await client.createPaymentPayload(required))).toString("base64");
}

test("An unpaid request gets a 402 with commerce terms, and a version 1 client finds nothing to sign", async () => {
  const answer = await post(url);
  expect(answer.status).toBe(402);
  expect(answer.body).toMatchObject({ x402Version: 1, accepts: [] });
  expect(challengeOf(answer).accepts).toMatchObject([
    {
      scheme: "commerce",
      amount: String(PRICES.demo),
      extra: { settlementMethod: "authorize", minFeeBps: 100, maxFeeBps: 100 },
    },
  ]);
  expectProblem(await post(url, { "PAYMENT-SIGNATURE": "x" }), 400, "malformed_payment");
});

const asHtml = { headers: { accept: "text/html" } };

test("The demo is a page for browsers and a JSON document for all other clients", async () => {
  const [document, page, forced] = [await send(url), await send(url, asHtml), await send(`${url}?format=json`, asHtml)];
  expect(document.body).toMatchObject({ price: formatUsd(PRICES.demo), contract: expect.stringMatching(/^0x/) });
  expect(forced.body).toEqual(document.body);
  for (const { headers } of [document, page, forced]) expect(headers.get("vary")).toBe("Accept");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  for (const text of [
    document.body.contract,
    document.body.merchant,
    `<strong>${formatUsd(PRICES.demo)} USDC</strong>`,
  ])
    expect(page.text).toContain(String(text));
});

const PATIENT = { timeout: 60_000, interval: 50 };

/** A node that fails for one method. */
const without =
  (method: string): Fault =>
  async (call, pass) =>
    call.method === method ? refuse(call, -32_000, `${method} is unavailable`) : pass(call);

test("A hold refunded after its release was decided but before it was mined gets no espresso", async () => {
  const buyer = await newPayer(chain, 1_000_000n);
  const client = new x402Client().register("eip155:*", new EscrowScheme(buyer));
  const header = encodeHeader(await client.createPaymentPayload(challengeOf(await post(url))));
  const paid = () => post(url, { "PAYMENT-SIGNATURE": header });
  // The hold is mined, and its buyer gets a Retry-After.
  node.become(without("eth_getLogs"));
  expectProblem(await paid(), 503, "payment_pending");
  await expect.poll(() => chain.usdcBalance(buyer.address), PATIENT).toBe(900_000n);
  await chain.increaseTime(1_750);
  node.become(without("eth_sendRawTransaction"));
  const id = paymentId({ chainId: chain.network.chainId, escrow: escrow.address }, presentedIn(header).info);
  const record = `${service.url}/escrow/evaluation/${id}?format=json`;
  await expect.poll(async () => (await send(record)).body.decision, PATIENT).toBe("release");
  await chain.increaseTime(60);
  await selfRefund({ account: devAccount(7), rpcUrl: chain.rpcUrl, paymentId: id });
  node.become(null);
  await expect.poll(async () => (await paid()).status, PATIENT).not.toBe(503);
  const { status, body } = await paid();
  expect([status, body.code]).toEqual([409, "escrow_over"]);
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
}, 150_000);
