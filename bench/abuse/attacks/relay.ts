import { setTimeout as sleep } from "node:timers/promises";
import { BASE, HALT_MINUTES } from "../../../test/support/base-like/profiles.ts";
import { binary } from "../../../test/support/service/database.ts";
import type { Ground } from "../ground.ts";
import { recordSent, type Sent } from "../recorder.ts";
import { type Attack, atMost } from "../row.ts";
import { openService, type Service } from "../service.ts";

const UNFINAL = 5_000;
const GIVEN_UP_AFTER = 120;
const SPIKE_LASTS = 240;
const SPIKE = 50;

const market = (times: number): number => Number((BASE.baseFee * BigInt(times) * 12n) / 10n + BASE.priorityFee);
const highest = (sent: readonly Sent[]): number => Math.max(...sent.map(({ maxFeePerGas }) => Number(maxFeePerGas)));
const tenths = (value: number): number => (value < 100 ? Math.round(value * 10) / 10 : Math.round(value));

/** Starts a payment and returns once its transaction was handed to the node. */
async function submit(service: Service, sent: readonly Sent[]): Promise<{ answer: Promise<unknown>; hash: string }> {
  const signed = await service.sign(await service.newPayer(), { validBefore: service.base.unixNow() + 7_200n });
  const before = sent.length;
  const answer = service.pay(signed);
  while (sent.length === before) await Promise.race([sleep(20), answer.then(() => sleep(1_000)).then(fail)]);
  return { answer, hash: sent.at(-1)?.hash ?? "" };
}

const fail = (): never => {
  throw new Error("the payment was not submitted");
};

async function attacked<T>(ground: Ground, work: (service: Service, sent: readonly Sent[]) => Promise<T>): Promise<T> {
  const service = await openService(ground);
  try {
    return await work(service, recordSent(ground.base));
  } finally {
    ground.base.become(null);
    ground.base.pool.forget();
    await ground.base.resume();
    await ground.base.fees(1);
    await service.stop();
  }
}

/** What the relayer offers while no block comes, and while the market jumps. */
export const FEES: Attack = {
  rows: [
    {
      id: "fee-halt",
      line: 2,
      what: `highest fee signed in a halt of ${HALT_MINUTES} minutes, over the market's`,
      unit: "×",
      goal: atMost(4),
    },
    {
      id: "fee-spike",
      line: 2,
      what: `highest fee signed in a spike × ${SPIKE}, over the market's then`,
      unit: "×",
      goal: atMost(4),
    },
    { id: "spike-mined", line: 2, what: `until a stuck payment is mined in that spike`, unit: "s", goal: atMost(60) },
  ],
  run: async (ground) => ({ ...(await attacked(ground, halted)), ...(await attacked(ground, spiked)) }),
};

async function halted(service: Service, sent: readonly Sent[]) {
  service.base.halt();
  const { answer } = await submit(service, sent);
  for (let half = 0; half < HALT_MINUTES * 2; half++) {
    await service.age(30);
    await service.tend();
  }
  await answer;
  return { "fee-halt": tenths(highest(sent) / market(1)) };
}

async function spiked(service: Service, sent: readonly Sent[]) {
  const { base } = service;
  base.halt();
  const { answer } = await submit(service, sent);
  await base.fees(SPIKE);
  await base.resume();
  const isMined = async () => (await base.chain.client.getTransactionCount({ address: service.relayer })) > 0;
  let seconds = 0;
  for (; !(await isMined()) && seconds < SPIKE_LASTS; seconds += 10) {
    await service.age(10);
    // What was read a moment ago is read again.
    await sleep(seconds % 30 === 20 ? 2_100 : 0);
    await service.tend();
  }
  await answer;
  const mined = (await isMined()) ? seconds : `> ${seconds}`;
  return { "fee-spike": tenths(highest(sent) / market(SPIKE)), "spike-mined": mined };
}

/** A transaction that the node acknowledged and dropped, behind thousands that are mined and not yet final. */
export const DROPPED: Attack = {
  rows: [
    {
      id: "dropped",
      line: 3,
      what: `until a dropped transaction is sent again behind ${UNFINAL.toLocaleString("en-US")} unfinal ones`,
      unit: "s",
      goal: atMost(60),
    },
  ],
  run: (ground) =>
    attacked(ground, async (service, sent) => {
      await fillRelay(service);
      service.base.pool.fate("swallowed");
      const { answer, hash } = await submit(service, sent);
      let seconds = 0;
      const again = () => sent.filter((one) => one.hash === hash).length > 1 || highest(sent.slice(1)) > 0;
      for (; !again() && seconds < GIVEN_UP_AFTER; seconds += 2) {
        await service.age(2);
        await service.tend();
      }
      await answer;
      return { dropped: again() ? seconds : `> ${seconds}` };
    }),
};

/** So many mined transactions that the journal of transactions has not looked at yet. */
async function fillRelay({ base, owner, relayer }: Service): Promise<void> {
  await base.chain.client.setNonce({ address: relayer, nonce: UNFINAL });
  const { rows } = await owner.query(
    "SELECT 1 FROM information_schema.columns WHERE table_name = 'relay' AND column_name = 'max_fee'",
  );
  const [columns, values] = rows.length === 0 ? ["", ""] : [", gas, max_fee", ", 100000, 14000000"];
  await owner.query(
    `INSERT INTO relay (chain, sender, nonce, hashes, raw, request${columns})
     SELECT 8453, $1, n, ARRAY[sha256(n::text::bytea)], '\\x00', '{}'${values} FROM generate_series(0, $2 - 1) AS n`,
    [binary(relayer), UNFINAL],
  );
}
