import { describe, expect, onTestFinished, test } from "vitest";
import { createContestStore } from "../../../api/escrow/contest/store.ts";
import { createEscrowStore } from "../../../api/escrow/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import type { Hex } from "../../../api/platform/wallet.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const MERCHANT = `0x${"ee".repeat(20)}` as const;
const PAYER = `0x${"bb".repeat(20)}` as const;
const WINDOW_ENDS = 2_000_000_000;

const payment = (place: number): Hex => `0x${String(place).padStart(64, "0")}`;

function holdOf(id: Hex, { payer = PAYER, amount = 10_000n }: { readonly payer?: Hex; readonly amount?: bigint } = {}) {
  const info = {
    ...({ operator: MERCHANT, payer, receiver: MERCHANT, token: MERCHANT, feeReceiver: MERCHANT } as const),
    ...{ maxAmount: amount, preApprovalExpiry: 1, authorizationExpiry: 2, refundExpiry: 3 },
    ...{ minFeeBps: 100, maxFeeBps: 100, salt: 1n },
  };
  const network = "eip155:8453" as const;
  return { network, contract: MERCHANT, id, info, transaction: id, block: 1, refundableFrom: 1 };
}

const evaluationOf = (id: Hex, decision: "release" | "refund" = "release") =>
  ({ payment: id, decision, rule: "delivered", record: id, document: "{}" }) as const;

const windowUntil = (until: number) => {
  const delivered = { status: 200, body_sha256: "0x", content_type: "", content_encoding: "" } as const;
  const promised = { expect: null, httpDelivery: null };
  return { seconds: 60, until, conditions: {}, promised, delivered, block: 1 } as const;
};

describe("escrow store", async () => {
  const database = await freshDatabase();
  const owner = await forFile(connectOwner(database));
  const store = createEscrowStore(await forFile(connect(database.apiUrl)));

  test("A task whose contest was answered during its turn is due immediately instead of at the end of the window", async () => {
    await owner.query(
      `INSERT INTO escrow_task (payment, chain, contract, info, decision, record, merchant, amount, held_block, gas, contest_until)
     SELECT decode(repeat(digits, 32), 'hex'), 8453, decode(repeat('aa', 20), 'hex'), '{"maxAmount": "1", "salt": "1"}', 'release',
       decode(repeat('cc', 32), 'hex'), decode(repeat('dd', 20), 'hex'), 1, 1, 0, $1 FROM unnest(ARRAY['01', '02']) AS digits`,
      [WINDOW_ENDS],
    );
    const [answered, silent] = (await store.take(2)).toSorted((a, b) => (a.payment < b.payment ? -1 : 1));
    if (answered === undefined || silent === undefined) throw new Error("two tasks are due");
    expect([answered.contestUntil, silent.contestUntil]).toEqual([WINDOW_ENDS, WINDOW_ENDS]);
    await owner.query(
      "UPDATE escrow_task SET decision = 'refund', contest_until = NULL, next_attempt_at = now() WHERE payment = decode(repeat('01', 32), 'hex')",
    );
    for (const seen of [answered, silent]) await store.lookAgain(seen, 300);
    expect(await store.take(2)).toMatchObject([{ payment: answered.payment, decision: "refund", contestUntil: null }]);
  });

  const COST = { gas: 50_000n, most: 150_000n };

  const decide = (by: typeof store, id: Hex) =>
    by.decide(holdOf(id), evaluationOf(id), { ...COST, recordOnChain: id, window: windowUntil(WINDOW_ENDS) });
  const countOf = async (what: string) =>
    (await owner.query<{ count: number }>(`SELECT ${what} AS count`)).rows[0]?.count;

  const GAS = `FROM escrow_gas WHERE account = decode('${PAYER.slice(2)}', 'hex')`;

  test("If two processes decide a payment at the same time, one of them stores it and the payer is charged once", async () => {
    const other = createEscrowStore(await forFile(connect(database.apiUrl)));
    expect(await decide(store, payment(10))).toBe("stored");
    // Both processes have read the payment's task before either can store one.
    await owner.query(`BEGIN; SELECT ${GAS} FOR UPDATE`);
    const deciding = Promise.all([decide(store, payment(11)), decide(other, payment(11))]);
    await expect
      .poll(() => countOf("(SELECT count(*)::int FROM pg_locks WHERE NOT granted)"), { timeout: 30_000 })
      .toBe(2);
    await owner.query("COMMIT");
    expect((await deciding).toSorted()).toEqual(["stored", "taken"]);
    expect(await countOf(`(SELECT gas::int ${GAS})`)).toBe(100_000);
    expect(await Promise.all([10, 11].map((place) => decide(store, payment(place))))).toEqual(["taken", "taken"]);
  });

  test("A decision whose payer has no gas left stores nothing", async () => {
    expect(await Promise.all([12, 13].map((place) => decide(store, payment(place))))).toEqual(["stored", "spent"]);
    expect(await store.decided(payment(13))).toEqual({ evaluation: null, task: null });
    expect(await countOf("(SELECT count(*)::int FROM escrow_window)")).toBe(3);
  });

  const BUYER = `0x${"ef".repeat(20)}` as const;
  const CLOCK = `0x${"00".repeat(20)}` as const;
  const gasOf = async (account: Hex) =>
    (await owner.query("SELECT day, gas::int FROM escrow_gas WHERE account = decode($1, 'hex')", [account.slice(2)]))
      .rows;

  const BLOCK = { block: 7, blockHash: `0x${"b1".repeat(32)}` } as const;
  const ended = (gas: bigint | null) => ({ decision: "refund", transaction: BLOCK.blockHash, ...BLOCK, gas }) as const;

  describe.each([
    ["a payer's account", BUYER],
    ["the account of timed-out payments", CLOCK],
  ] as const)("gas of an outcome charged to %s", (what, account) => {
    const id = (place: number) => payment(place + (account === CLOCK ? 100 : 200));
    const reckoned = async (place: number) => {
      const hold = holdOf(id(place), { payer: BUYER });
      const on = { gas: 50_000n, most: 10n ** 9n };
      const became =
        account === CLOCK
          ? store.timeOut(hold, on)
          : store.decide(hold, evaluationOf(hold.id, "refund"), { ...on, recordOnChain: id(0), window: null });
      expect(await became).toBe("stored");
      const { task } = await store.decided(hold.id);
      if (task === null) throw new Error(`no task on ${what}`);
      return task;
    };
    const gas = async () => (await gasOf(account)).map((row) => row.gas);

    test("The actual gas replaces the estimate once it is known, and reorganizations do not count it again", async () => {
      const task = await reckoned(1);
      expect(await gas()).toEqual([50_000]);
      for (const [took, counts] of [
        [30_000n, 30_000],
        [35_000n, 30_000],
        [29_000n, 29_000],
        [null, 29_000],
      ] as const) {
        await store.mined(task, ended(took));
        await store.mined(task, ended(1n));
        expect(await gas()).toEqual([counts]);
        await store.reopen(BLOCK);
      }
      await store.mined(task, ended(null));
    });

    test("The charge never exceeds the estimate, and nothing is returned if another sender may have paid", async () => {
      const [before = 0] = await gas();
      const [dear, strange] = [await reckoned(2), await reckoned(3)];
      await store.mined(dear, ended(80_000n));
      await store.mined(strange, ended(null));
      expect(await gas()).toEqual([before + 100_000]);
    });

    test("Unused gas is returned to the day that it was charged to", async () => {
      const task = await reckoned(4);
      const [today] = await gas();
      await owner.query(
        "UPDATE escrow_task SET created_at = created_at - interval '1 day' WHERE payment = decode($1, 'hex')",
        [task.payment.slice(2)],
      );
      await owner.query(
        "INSERT INTO escrow_gas SELECT account, day - 1, 60000 FROM escrow_gas WHERE account = decode($1, 'hex')",
        [account.slice(2)],
      );
      await store.mined(task, ended(20_000n));
      expect((await gas()).toSorted()).toEqual([30_000, today].toSorted());
    });
  });
});

describe("contest store", async () => {
  const database = await freshDatabase();
  const owner = await forFile(connectOwner(database));
  /** The pool and the contest store of one process. */
  const startProcess = async () => {
    const pool = await forFile(connect(database.apiUrl));
    return { pool, contests: createContestStore(pool) };
  };
  const [one, other] = [await startProcess(), await startProcess()];

  const NOW = WINDOW_ENDS - 600;

  /** A contest of a payment with a window, held by its process. */
  async function opened(place: number, { amount = 10_000n, until = WINDOW_ENDS } = {}) {
    const id = payment(place);
    const cost = { gas: 0n, most: 1n, recordOnChain: id, window: windowUntil(until) };
    const hold = holdOf(id, { payer: MERCHANT, amount });
    expect(await createEscrowStore(one.pool).decide(hold, evaluationOf(id), cost)).toBe("stored");
    const present = await one.contests.enter();
    const contest = {
      payment: id,
      claim: { category: "expect" },
      claimSha256: id,
      signature: "0x01",
      madeAt: 1,
    } as const;
    expect(await one.contests.open(contest, present.owner)).toBe("opened");
    let isThere = true;
    const leave = () => {
      if (isThere) present.leave();
      isThere = false;
    };
    onTestFinished(leave);
    return { id, owner: present.owner, leave };
  }

  /** Takes the contests that another process finds due, and postpones them by ten minutes. */
  async function takenByOther(): Promise<readonly Hex[]> {
    if (!(await other.contests.areDue())) return [];
    const present = await other.contests.enter();
    const taken = await other.contests.take(4, present.owner, NOW);
    for (const payment of taken) await other.contests.lookAgain(payment, 600);
    present.leave();
    return taken;
  }

  test("A contest belongs to its process while that lives and is free for others immediately afterwards", async () => {
    const { id, leave } = await opened(1);
    expect(await takenByOther()).toEqual([]);
    leave();
    await expect.poll(takenByOther).toEqual([id]);
    expect(await takenByOther()).toEqual([]);
  });

  test("A process that has lost its connection loses its contests", async () => {
    const { id, owner: gone } = await opened(2);
    expect(await takenByOther()).toEqual([]);
    await owner.query(
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::oid",
      [gone],
    );
    await expect.poll(takenByOther).toEqual([id]);
  });

  test("A process that hangs keeps its contests for one minute", async () => {
    const { id } = await opened(3);
    const age = (by: string) =>
      owner.query(
        `UPDATE escrow_contest SET next_attempt_at = next_attempt_at - interval '${by}' WHERE owner IS NOT NULL`,
      );
    await age("30 s");
    expect(await takenByOther()).toEqual([]);
    await age("30 s");
    expect(await takenByOther()).toEqual([id]);
  });

  test("The next contest has the most value per remaining time, and a window of one second is as urgent as one of a minute", async () => {
    const waiting = [
      await opened(11, { amount: 20_000n }),
      await opened(12, { until: NOW + 1 }),
      await opened(13, { until: NOW + 60 }),
      await opened(14, { until: NOW + 60, amount: 10_001n }),
      await opened(15, { until: NOW - 60 }),
    ];
    await owner.query("UPDATE escrow_contest SET next_attempt_at = '-infinity', owner = NULL WHERE payment = ANY($1)", [
      waiting.map(({ id }) => Buffer.from(id.slice(2), "hex")),
    ]);
    const { owner: taker, leave } = await other.contests.enter();
    onTestFinished(leave);
    const taken: Hex[] = [];
    for (const _ of waiting) taken.push(...(await other.contests.take(1, taker, NOW)));
    expect(taken).toEqual([3, 4, 1, 2, 0].map((place) => waiting[place]?.id));
  });
});
