import { x402Client } from "@x402/fetch";
import { expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { usdcEventsAbi } from "../../../contracts/abi.ts";
import { EscrowScheme } from "../../../packages/escrow/src/index.ts";
import { selfRefund } from "../../../packages/escrow/src/self-refund.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode } from "../../support/chain/nodes.ts";
import { type Fault, refuse } from "../../support/chain/rpc.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { decodeHeader, encodeHeader } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { challengeOf, post } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const node = await forFile(startFaultyNode(chain));
const service = await forFile(
  startService({
    chain,
    config: { escrowAddresses: [escrow.address], rpcUrls: eachNetwork(() => node.url) },
  }),
);
const owner = await forFile(connectOwner(service.database));

const url = `${service.url}/escrow/demo`;
const PATIENT = { timeout: 30_000, interval: 50 };

/** A node without logs: transactions are mined, but the service cannot see them. */
const withoutLogs: Fault = async (call, pass) =>
  call.method === "eth_getLogs" ? refuse(call, -32_000, "logs are unavailable") : pass(call);

async function signed() {
  const buyer = await newPayer(chain, 1_000_000n);
  const client = new x402Client().register("eip155:*", new EscrowScheme(buyer));
  const payment = await client.createPaymentPayload(challengeOf(await post(url)));
  return { buyer, header: { "PAYMENT-SIGNATURE": encodeHeader(payment) } };
}

/** Pays while the service cannot see the hold, so that it is mined and the buyer gets a 503. */
async function heldUnseen() {
  const { buyer, header } = await signed();
  node.become(withoutLogs);
  expectProblem(await post(url, header), 503, "payment_pending");
  await expect.poll(() => chain.usdcBalance(buyer.address), PATIENT).toBe(900_000n);
  return { buyer, header };
}

/** The rows of a buyer's payments. */
const rowsOf = async (buyer: `0x${string}`) =>
  (
    await owner.query("SELECT state, scheme, details ->> 'payer' AS payer FROM payment WHERE payer = $1", [
      Buffer.from(buyer.slice(2), "hex"),
    ])
  ).rows;

test("A version 1 payment is rejected with the name of the right header", async () => {
  const version1 = encodeHeader({ x402Version: 1, scheme: "commerce", network: "base", payload: {} });
  const answer = await post(url, { "X-PAYMENT": version1 });
  expectProblem(answer, 400, "malformed_payment");
  expect(answer.body.detail).toMatch(/x402 version 2, in PAYMENT-SIGNATURE/);
});

test("Terms without their payer, as in the draft, buy, and with the payer they are the same payment", async () => {
  const { buyer, header } = await signed();
  const payment = decodeHeader(header["PAYMENT-SIGNATURE"]);
  const { payer, ...paymentInfo } = payment.payload.paymentInfo;
  const draft = encodeHeader({ ...payment, payload: { ...payment.payload, paymentInfo } });
  const first = await post(url, { "PAYMENT-SIGNATURE": draft });
  expect([payer, first.status]).toEqual([buyer.address, 200]);
  const again = await post(url, header);
  expect([again.status, again.headers.get("x-idempotent-replay"), again.text]).toEqual([200, "true", first.text]);
  expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
});

test("A hold whose buyer does not return is still served, evaluated, and released", async () => {
  const { buyer, header } = await heldUnseen();
  node.become(null);
  const payer = buyer.address.toLowerCase();
  await expect.poll(() => rowsOf(buyer.address), PATIENT).toEqual([{ state: "fulfilled", scheme: "commerce", payer }]);
  const answer = await post(url, header);
  expect([answer.status, answer.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
  expect(answer.body).toMatchObject({ item: "espresso", escrow: { evaluation: { decision: "release" } } });
  expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
});

test("A hold refunded before it was served gets a 409, and so does every retry", async () => {
  const { buyer, header } = await heldUnseen();
  await chain.increaseTime(1_801);
  const transaction = await heldIn(buyer.address);
  await selfRefund({ account: devAccount(7), rpcUrl: chain.rpcUrl, transaction });
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  node.become(null);
  await expect.poll(async () => (await post(url, header)).status, PATIENT).toBe(409);
  const answer = await post(url, header);
  expect(answer.body).toMatchObject({ code: "escrow_over", detail: expect.stringMatching(/refunded/) });
  expect((await post(url, header)).text).toBe(answer.text);
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
});

/** The transaction that holds a buyer's money. */
async function heldIn(buyer: `0x${string}`): Promise<`0x${string}`> {
  const [, event] = usdcEventsAbi;
  const args = { from: buyer, to: escrow.address };
  const [log] = await chain.client.getLogs({ address: chain.network.usdc.address, event, args, fromBlock: 0n });
  if (!log) throw new Error("nothing is held");
  return log.transactionHash;
}
