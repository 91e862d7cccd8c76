import { afterAll, beforeEach, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { type FaultyNode, standingStillAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { startFacilitator } from "../../support/payments/facilitator.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
await chain.mine(20);
const node = await forFile(startFaultyNode(chain));
const facilitator = await forFile(startFacilitator(chain));
const rpcUrls = { "eip155:8453": node.url, "eip155:84532": node.url };
const service = await forFile(startService({ chain, config: { rpcUrls, facilitator: { remote: facilitator.url } } }));

beforeEach(() => node.become(null));
afterAll(() => node.become(null));

type Faulty = Parameters<FaultyNode["become"]>[0] & object;

/** Nodes behind one address: the one that is asked for logs stands still, the others know every block. */
const logsStandStillAt =
  (head: bigint): Faulty =>
  (call, pass) =>
    call.method === "eth_getLogs" ? standingStillAt(head)(call, pass) : pass(call);

test("logs that lag behind the final block do not make a settled payment look burnt: 503, then the result", async () => {
  const signed = await signPayment(await newPayer(chain));
  node.become(logsStandStillAt(await chain.client.getBlockNumber()));
  expectProblem(await post(`${service.url}/test/basic`, v2(signed)), 503, "payment_pending");
  await chargedOnce(chain, signed);
  await chain.mine(8);
  expectProblem(await post(`${service.url}/test/basic`, v2(signed)), 503, "payment_pending");
  node.become(null);
  expect((await post(`${service.url}/test/basic`, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("logs that lag reverse no certificate", async () => {
  const signed = await signPayment(await newPayer(chain));
  const before = await chain.client.getBlockNumber();
  const first = await post(`${service.url}/test/basic`, v2(signed));
  expect(first.status).toBe(200);
  const logs = logsStandStillAt(before);
  // A reorganization put the same transaction into another block: its old block is unknown, its logs lag.
  node.become((call, pass) =>
    call.method === "eth_getBlockByNumber" && String(call.params?.[0]).startsWith("0x")
      ? standingStillAt(before)(call, pass)
      : logs(call, pass),
  );
  await chain.mine(8);
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  const replay = await post(`${service.url}/test/basic`, v2(signed));
  node.become(null);
  expect([replay.status, replay.text]).toEqual([200, first.text]);
});
