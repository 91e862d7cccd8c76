import {
  decodeFunctionResult,
  encodeFunctionResult,
  type Hex,
  type LocalAccount,
  multicall3Abi,
  numberToHex,
} from "viem";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE } from "../../support/base-like/profiles.ts";
import { payUnseen } from "../../support/base-like/stage.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { type FaultyNode, standingStillAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { type Call, type Fault, refuse, replyTo } from "../../support/chain/rpc.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { startFacilitator, type TestFacilitator } from "../../support/payments/facilitator.ts";
import { cancel, chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { ALONE, startService, type TestService, type TestServicePlan } from "../../support/service/service.ts";

describe("nodes behind one address that disagree", async () => {
  // Nodes behind one address disagree: whatever cannot be undone needs two answers that were requested separately.

  let skippedMs = 0;
  const clock = performance.now.bind(performance);
  const skipping = vi.spyOn(performance, "now").mockImplementation(() => clock() + skippedMs);
  afterAll(() => skipping.mockRestore());

  const base = await forFile(startBaseLike({ profile: { ...BASE, backends: [{ lagMs: 0 }] } }));
  const { chain } = base;
  const service = await forFile(
    startService({ chain, now: base.now, jobs: false, patienceMs: 1_500, config: { ...ALONE, rpcUrls: base.rpcUrls } }),
  );
  afterEach(() => base.become(null));

  const FINAL_MINUTES = 20;
  /** By the clock that says how old a reading is: what is final is read again. */
  const untilReadAgain = () => {
    skippedMs += 2_100;
  };

  const expectToWait = (answer: Answer) => expectProblem(answer, 503, "payment_pending");
  const soldOnce = async (again: () => Promise<Answer>) => expect((await again()).status).toBe(200);

  /** Every second call of a kind, the first or the second, is answered by a node that is wrong. */
  function everySecond(which: "first" | "second", concerns: (call: Call) => boolean, wrong: Fault): Fault {
    let asked = which === "first" ? 0 : 1;
    return (call, pass) => (concerns(call) && asked++ % 2 === 0 ? wrong(call, pass) : pass(call));
  }

  const asksForBlock = (block: string) => (call: Call) =>
    call.method === "eth_getBlockByNumber" && call.params?.[0] === block;

  /** A node that calls its newest block final. */
  const tooSure: Fault = (call, pass) => pass({ ...call, params: ["latest", false] });

  const asksForState = ({ method, params }: Call) =>
    // Multicall3's getBlockNumber.
    method === "eth_call" && JSON.stringify(params).includes("42cbb15c");

  /** A node that has its block's number and time right, and the nonce unused. */
  const forgetful: Fault = async (call, pass) => {
    const reply = await pass(call);
    const of = { abi: multicall3Abi, functionName: "aggregate3" } as const;
    const [, ...block] = decodeFunctionResult({ ...of, data: reply.result as Hex });
    const unused = { success: true, returnData: numberToHex(0, { size: 32 }) };
    return replyTo(call, encodeFunctionResult({ ...of, result: [unused, ...block] }));
  };

  test("logs without the Transfer burn no payment", async () => {
    const { again } = await payUnseen(base, service);
    await base.pass(FINAL_MINUTES);
    base.become(async (call, pass) => {
      const reply = await pass(call);
      if (call.method !== "eth_getLogs") return reply;
      // Without the event's data, only AuthorizationUsed is left.
      return replyTo(
        call,
        (reply.result as { data: Hex }[]).filter(({ data }) => data === "0x"),
      );
    });
    expectToWait(await again());
    expectToWait(await again());
    base.become(null);
    await soldOnce(again);
  });

  test("the use and the Transfer come from one node, or nothing is concluded", async () => {
    const { again } = await payUnseen(base, service);
    await base.pass(FINAL_MINUTES);
    base.become(async (call, pass) => {
      const [filter] = (call.params ?? []) as { topics?: readonly unknown[] }[];
      const isAboutTheNonce = JSON.stringify(filter?.topics ?? "").includes("98de503528ee59b575ef0c0a2576a82497bfc029");
      return call.method === "eth_getLogs" && !isAboutTheNonce ? replyTo(call, []) : pass(call);
    });
    await soldOnce(again);
  });

  test("one node that forgets a nonce expires no payment", async () => {
    const { again } = await payUnseen(base, service);
    await base.pass(FINAL_MINUTES);
    for (let asked = 0; asked < 2; asked++) {
      untilReadAgain();
      base.become(everySecond("first", asksForState, forgetful));
      expectToWait(await again());
    }
    base.become(null);
    await soldOnce(again);
  });

  test("one node that is too sure what is final burns nothing; a cancellation in a final block does", async () => {
    const payer = await newPayer(chain);
    const signed = await signPayment(payer, { validBefore: base.unixNow() + 120n });
    const pay = () => post(`${service.url}/test/basic`, v2(signed));
    base.become(async (call, pass) =>
      call.method === "eth_estimateGas" || asksForState(call) ? refuse(call, -32_000, "nothing works") : pass(call),
    );
    expectToWait(await pay());
    await cancel(chain, payer, signed);
    await chain.mine(10);
    base.become(everySecond("second", asksForBlock("finalized"), tooSure));
    for (let asked = 0; asked < 2; asked++) {
      untilReadAgain();
      expectToWait(await pay());
    }
    base.become(null);
    await base.pass(FINAL_MINUTES);
    for (let asked = 0; asked < 2; asked++) {
      untilReadAgain();
      await pay();
    }
    expect((await pay()).body.error).toMatch(/canceled or spent elsewhere/);
  });

  test("one node that is too sure, or has another block, finalizes no sale", async () => {
    const signed = await signPayment(await newPayer(chain), { validBefore: base.unixNow() + 120n });
    const answer = await post(`${service.url}/test/basic`, v2(signed));
    const { block } = answer.body.settlement as { block: number };
    await chain.mine(10);
    base.become(everySecond("second", asksForBlock("finalized"), tooSure));
    for (let passes = 0; passes < 2; passes++) expect(await resolved()).toEqual({ final: false });
    await base.pass(FINAL_MINUTES);
    for (let passes = 0; passes < 2; passes++) {
      base.become(everySecond("second", asksForBlock(numberToHex(block)), tooSure));
      expect(await resolved()).toEqual({ final: false });
    }
    base.become(null);
    expect(await resolved()).toEqual({ final: true });

    /** What a pass of the resolver makes of it. */
    async function resolved() {
      untilReadAgain();
      return withClient(service.database.ownerUrl, async (client) => {
        const nonce = Buffer.from(signed.authorization.nonce.slice(2), "hex");
        await client.query("UPDATE payment SET next_attempt_at = now(), lease_until = '-infinity' WHERE nonce = $1", [
          nonce,
        ]);
        await service.gate.resolveDue();
        const { rows } = await client.query("SELECT final_at IS NOT NULL AS final FROM payment WHERE nonce = $1", [
          nonce,
        ]);
        return rows[0];
      });
    }
  });
});

describe("one node that lags", () => {
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
    const rpcUrls = eachNetwork(() => node.url);
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
});
