import { afterAll, describe, expect, test, vi } from "vitest";
import { HALT_MINUTES } from "../support/base-like/profiles.ts";
import { type BaseStage, expectBought, startBaseStage } from "../support/base-like/stage.ts";
import { eventually } from "../support/eventually.ts";
import { expectProblem } from "../support/payments/expectations.ts";
import { nothingCharged } from "../support/payments/on-chain.ts";
import { type Answer, send } from "../support/payments/requests.ts";
import type { Signed } from "../support/payments/signing.ts";

// A payer's view of Base: finality, halts, fees, and the transaction pool.

vi.setConfig({ testTimeout: 60_000 });

const stages: BaseStage[] = [];
afterAll(() => Promise.all(stages.map((stage) => stage.stop())));

async function stage(): Promise<BaseStage> {
  const started = await startBaseStage();
  stages.push(started);
  return started;
}

const expectToWait = (answer: Answer) => expectProblem(answer, 503, "payment_pending");
const bodyOf = async (url: unknown) => (await send(String(url))).body;

/** Sends the payment and waits until its transaction is in the pool, where it stays. */
async function inPool({ base, pay }: BaseStage, signed: Signed): Promise<() => Promise<Answer>> {
  const answer = pay(signed);
  await eventually(() => base.pool.waiting().length, 1);
  return () => answer;
}

describe.concurrent("payment on a chain like Base", () => {
  test("A payment has its result immediately, is final after 15 minutes and not before, and is replayed throughout", async () => {
    const at = await stage();
    const { base, service, pay, rowOf } = at;
    const signed = await at.sign(5);
    const answer = await expectBought(at, signed);
    const { transaction } = answer.body.settlement as { transaction: string };
    const isFinal = async () => (await bodyOf(`${service.url}/receipt?tx=${transaction}`)).final;
    for (const minutes of [7, 7]) {
      await base.pass(minutes);
      await at.age(minutes);
      expect([await isFinal(), await rowOf(signed)]).toEqual([false, { state: "fulfilled", final: false }]);
      expect((await pay(signed)).text).toBe(answer.text);
    }
    await base.pass(2);
    await at.age(2);
    await eventually(() => rowOf(signed), { state: "fulfilled", final: true });
    expect([await isFinal(), (await expectBought(at, signed)).text]).toEqual([true, answer.text]);
    expect(await bodyOf(answer.body.cert_url)).toMatchObject({ fresh: true, reversed: false });
  });

  test("A settlement mined after 20 minutes yields its result then, with one charge", async () => {
    const at = await stage();
    const { base, pay } = at;
    base.pool.treat({ afterMinutes: 20 });
    const signed = await at.sign(60);
    await inPool(at, signed);
    await base.pass(10);
    await at.age(10);
    const retried = pay(signed);
    await base.pass(9);
    await nothingCharged(base.chain, signed.authorization.from);
    await base.pass(2);
    expect([200, 503]).toContain((await retried).status);
    await expectBought(at, signed);
  });

  test("A payment that expires during a halt of 33 minutes settles in the first block afterwards and is never a 402", async () => {
    const at = await stage();
    const { base, pay } = at;
    const [short, long] = [await at.sign(5), await at.sign(60)];
    base.halt();
    const first = await inPool(at, short);
    const second = pay(long);
    await eventually(() => base.pool.waiting().length, 2);
    await base.pass(HALT_MINUTES);
    await at.age(HALT_MINUTES);
    expectToWait(await pay(short));
    await base.resume();
    for (const signed of [short, long]) await expectBought(at, signed);
    for (const { status } of [await first(), await second]) expect([200, 503]).toContain(status);
  });
});
