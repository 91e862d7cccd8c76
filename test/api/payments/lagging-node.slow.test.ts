import type { LocalAccount } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { type FaultyNode, standingStillAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { eventually } from "../../support/eventually.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { startFacilitator, type TestFacilitator } from "../../support/payments/facilitator.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { startService, type TestService, type TestServicePlan } from "../../support/service/service.ts";

const LIMIT = 90_000;

let chain: TestChain;
let facilitator: TestFacilitator;
const payers: LocalAccount[] = [];
const nodes: FaultyNode[] = [];
const services: TestService[] = [];

beforeAll(async () => {
  chain = await startTestChain({ slotsInAnEpoch: 3 });
  // anvil knows the state of loaded blocks only at its head.
  await chain.mine(20);
  facilitator = await startFacilitator(chain);
  while (payers.length < 9) payers.push(await newPayer(chain));
});
afterAll(async () => {
  for (const node of nodes) node.become(null);
  await Promise.all(services.map((service) => service.stop()));
  for (const node of nodes) node.stop();
  facilitator?.stop();
  await chain?.stop();
});

const head = () => chain.client.getBlockNumber();
const signedByNext = () => signPayment(payers.pop() as LocalAccount);

/** A service of the test's own that sees the chain through a node of its own, and one payment to it. */
async function stage(plan: Partial<TestServicePlan> = { config: { facilitator: { remote: facilitator.url } } }) {
  const node = await startFaultyNode(chain);
  nodes.push(node);
  const rpcUrls = { "eip155:8453": node.url, "eip155:84532": node.url };
  const service = await startService({ chain, ...plan, config: { ...plan.config, rpcUrls } });
  services.push(service);
  const signed = await signedByNext();
  const values = [binary(signed.authorization.nonce)];
  const ask = (text: string) =>
    withClient(service.database.ownerUrl, async (client) => (await client.query<object>(text, values)).rows[0]);
  return {
    node,
    service,
    signed,
    pay: (payment: Signed = signed) => post(`${service.url}/test/basic`, v2(payment)),
    handed: () => facilitator.handed.get(signed.authorization.nonce),
    row: () => ask("SELECT state, final_at IS NOT NULL AS final FROM payment WHERE nonce = $1"),
    certificates: () => ask("SELECT count(*)::int AS n FROM certificate WHERE nonce = $1"),
    /** What a lease of 30 seconds does by itself. */
    endLease: () => ask("UPDATE payment SET lease_until = '-infinity', next_attempt_at = now() WHERE nonce = $1"),
  };
}

type Stage = Awaited<ReturnType<typeof stage>>;

async function expectBoughtOnce({ signed, certificates }: Stage, answer: Answer): Promise<void> {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  const [settled] = await settlements(chain, signed.authorization.from);
  expect(answer.body).toMatchObject({ settlement: { transaction: settled?.transaction } });
  await chargedOnce(chain, signed);
  expect(await certificates()).toEqual({ n: 1 });
}

const expectToWait = (answer: Answer) => expectProblem(answer, 503, "payment_pending");

describe.concurrent("a node that lags behind the chain", () => {
  test(
    "shows the settlement late: 503 until then, and what is submitted again meanwhile is charged once",
    async () => {
      const at = await stage();
      at.node.become(standingStillAt(await head()));
      for (const handed of [1, 2]) {
        expectToWait(await at.pay());
        expect(at.handed()).toBe(handed);
        await chargedOnce(chain, at.signed);
      }
      at.node.become(null);
      await expectBoughtOnce(at, await at.pay());
    },
    LIMIT,
  );
});

describe.concurrent("a node that reports an older head than before", () => {
  test(
    "takes no result away: the certificate stands, and what is submitted again is charged once",
    async () => {
      const at = await stage();
      const before = await head();
      const first = await at.pay();
      await expectBoughtOnce(at, first);
      at.node.become(standingStillAt(before));
      await at.endLease();
      await eventually(at.handed, 2);
      const replay = await at.pay();
      expect([replay.status, replay.text]).toEqual([200, first.text]);
      expect(await at.row()).toMatchObject({ state: "fulfilled" });
      const { body } = await send(`${at.service.url}/verify?wallet=${at.signed.authorization.from}`);
      expect(body.verified).toBe(true);
      at.node.become(null);
      await chain.mine(8);
      await eventually(at.row, { state: "fulfilled", final: true });
      expect((await send(String(first.body.cert_url))).body).toMatchObject({ reversed: false });
      await expectBoughtOnce(at, first);
    },
    LIMIT,
  );
});
