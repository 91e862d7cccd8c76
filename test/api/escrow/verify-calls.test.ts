import { expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode } from "../../support/chain/nodes.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";

// The calls to the node that unpaid requests from strangers can cause.

// No block becomes final, so the outcomes' blocks are read on every run.
const chain = await forFile(startTestChain({ slotsInAnEpoch: 64 }));
const [current, earlier] = [await deployEscrow(chain), await deployEscrow(chain)];
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const escrowAddresses = [current.address, earlier.address];
const service = await forFile(startService({ chain, jobs: false, config: { rpcUrls, escrowAddresses } }));

async function callsOf(work: () => Promise<unknown>): Promise<number> {
  let calls = 0;
  node.become((call, pass) => {
    calls++;
    return pass(call);
  });
  await work();
  node.become(null);
  return calls;
}

const SIGNATURE = `0x${"11".repeat(65)}`;
const forward = (body: object) =>
  send(`${service.url}/escrow/verify`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ responseBody: "{}", ...body }),
  });
const unknown = (digit: string) => `0x${digit.repeat(64)}`;

test("An unknown payment costs one call, and a flood of requests for it shares its calls", async () => {
  const payment = { payment_id: unknown("1"), signature: SIGNATURE };
  expect(await callsOf(async () => expectProblem(await forward(payment), 404, "not_found"))).toBe(1);
  const flood = () => Promise.all(Array.from({ length: 50 }, () => forward({ ...payment, payment_id: unknown("2") })));
  // One call per half second that the flood lasts.
  expect(await callsOf(flood)).toBeLessThan(10);
  expect(await callsOf(() => forward({ transaction: unknown("3"), signature: SIGNATURE }))).toBe(1);
});

test("A flood of different unknown payments shares its calls", async () => {
  const ids = Array.from({ length: 60 }, (_, n) => `0x${String(n).padStart(64, "5")}`);
  const flood = () =>
    Promise.all(
      ids.map(async (payment_id) =>
        expectProblem(await forward({ payment_id, signature: SIGNATURE }), 404, "not_found"),
      ),
    );
  expect(await callsOf(flood)).toBeLessThan(ids.length / 2);
});

test("Terms without their merchant's signature cost one read of the merchant's code, once", async () => {
  const account = `0x${"12".repeat(20)}`;
  const paymentInfo = {
    operator: current.address,
    payer: account,
    receiver: account,
    token: chain.network.usdc.address,
    maxAmount: "1000000",
    preApprovalExpiry: 1,
    authorizationExpiry: 1,
    refundExpiry: 1,
    minFeeBps: 100,
    maxFeeBps: 100,
    feeReceiver: account,
    salt: "1",
  };
  const ask = async () => expectProblem(await forward({ paymentInfo, signature: SIGNATURE }), 403, "not_the_merchant");
  expect(await callsOf(ask)).toBeLessThanOrEqual(1);
  expect(await callsOf(ask)).toBe(0);
});

test("An unsigned forward costs no call", async () => {
  for (const name of ["payment_id", "transaction"]) {
    const ask = async () => expectProblem(await forward({ [name]: unknown("4") }), 403, "not_the_merchant");
    expect(await callsOf(ask)).toBe(0);
  }
});
