import { x402Client } from "@x402/fetch";
import { expect, test } from "vitest";
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
import { challengeOf, post, send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, config: { escrowAddresses: [escrow.address], rpcUrls } }));

const url = `${service.url}/escrow/demo`;
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
