import { setTimeout as sleep } from "node:timers/promises";
import type { Signed } from "../../../test/support/payments/signing.ts";
import { startBlackHole } from "../../../test/support/service/black-hole.ts";
import { type Attack, atMost, type Value } from "../row.ts";
import { openService, type Service } from "../service.ts";

const HOLE_MS = 60_000;
const ASKED_EVERY_MS = 4_000;
const TOGETHER = 4;
/** More than there are connections. */
const CROWD = 24;
const GIVEN_UP_AFTER_MS = 30_000;
const seconds = (ms: number): number => Math.round(ms / 100) / 10;

/** PostgreSQL vanishes for a minute, and no connection learns of it. */
export const BLACK_HOLE: Attack = {
  rows: [
    {
      id: "hole-recovery",
      line: 8,
      what: "until payments work again after a minute without PostgreSQL",
      unit: "s",
      goal: atMost(15),
    },
    { id: "hole-answer", line: 8, what: "slowest answer to a payment meanwhile", unit: "s", goal: atMost(10) },
  ],
  async run(ground) {
    const base = await ground.ownBase();
    const database = await ground.newDatabase();
    const hole = await startBlackHole(database.apiUrl);
    ground.untilEnd(hole.stop);
    const now = () => new Date();
    const service = await openService(ground, { base, database, databaseUrl: hole.url, jobs: true, now });
    ground.untilEnd(service.stop);
    const [known, crowd] = [await signed(service, CROWD), await signed(service, CROWD)];
    // Every connection is open when they die, and each of them is asked something then.
    await Promise.all(known.map((one) => service.pay(one)));
    hole.swallow();
    const answers = crowd.map((one) => timed(service, one));
    for (let passed = 0; passed < HOLE_MS; passed += ASKED_EVERY_MS) {
      for (const one of await signed(service, TOGETHER)) answers.push(timed(service, one));
      await sleep(ASKED_EVERY_MS);
    }
    hole.restore();
    const opened = performance.now();
    const recovery = await recovered(service, opened);
    const slowest = Math.max(...(await Promise.all(answers.slice(0, -TOGETHER))));
    const answer: Value = slowest === Number.POSITIVE_INFINITY ? "never" : seconds(slowest);
    return { "hole-recovery": recovery, "hole-answer": answer };
  },
};

const signed = (service: Service, count: number): Promise<Signed[]> =>
  Promise.all(Array.from({ length: count }, async () => service.sign(await service.newPayer())));

/** Milliseconds until a payment has any answer; infinite if it has none when the attack gives up. */
async function timed(service: Service, one: Signed): Promise<number> {
  const started = performance.now();
  const never = sleep(HOLE_MS + GIVEN_UP_AFTER_MS).then(() => Number.POSITIVE_INFINITY);
  return Promise.race([service.pay(one).then(() => performance.now() - started), never]);
}

/** Everything works: as many payments at once as there are connections, and more. */
async function recovered(service: Service, since: number): Promise<Value> {
  while (performance.now() - since < GIVEN_UP_AFTER_MS) {
    const left = sleep(GIVEN_UP_AFTER_MS - (performance.now() - since)).then(() => ({ status: 0 }));
    const crowd = await signed(service, CROWD);
    const answers = await Promise.all(crowd.map((one) => Promise.race([service.pay(one), left])));
    if (answers.every(({ status }) => status === 200)) return seconds(performance.now() - since);
    await sleep(250);
  }
  return `> ${GIVEN_UP_AFTER_MS / 1000}`;
}
