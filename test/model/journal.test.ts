import { randomUUID } from "node:crypto";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { createJournal } from "../../api/payments/journal/journal-store.ts";
import type { Entered, NewPayment } from "../../api/payments/journal.ts";
import { START, step } from "../../api/payments/step.ts";
import type { Row, State, Write } from "../../api/payments/step-types.ts";
import type { Settlement } from "../../api/platform/chain/view.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { createSeal } from "../../api/platform/db/seal.ts";
import { answered } from "../../api/platform/http/answer.ts";
import { forFile } from "../support/for-file.ts";
import { isLeaving, newPayment } from "../support/payments/journal-rows.ts";
import { binary, freshDatabase } from "../support/service/database.ts";
import { execute, find } from "./journal.ts";
import { finalize } from "./outside-runs.ts";
import { heartbeat, resolve } from "./shell.ts";
import {
  beginning,
  type Process,
  resultOf,
  type Sent,
  type Surroundings,
  settlementAt,
  withAuthorization,
  withRow,
} from "./world.ts";

/** Compares the model's statements with PostgreSQL's. The same rows must change to the same values. */

const FIRST: Sent = { authorization: 0, asks: "r1", id: "X", by: "payer" };
const SECOND: Sent = { ...FIRST, authorization: 1 };
const WORLD = { sent: [FIRST, SECOND] };
const AS_BUILT = { world: WORLD, step, off: null };

const real = (place: number): Settlement => ({
  transaction: `0x${`${place}`.repeat(64)}`,
  block: place,
  blockHash: `0x${`${place}`.repeat(64)}`,
  logIndex: 0,
});
const response = resultOf("r1");

const WRITES = {
  refuse: { type: "write", from: ["received"], to: "void", reason: "refused" },
  leave: { type: "write", from: ["received"], to: "settling" },
  settle: { type: "write", from: ["settling", "settled"], to: "settled", settlement: settlementAt(1) },
  goBack: { type: "write", from: ["settled"], to: "settling" },
  expire: { type: "write", from: ["settling", "settled"], to: "void", reason: "expired" },
  revert: { type: "write", from: ["settling", "settled"], to: "void", reason: "reverted" },
  move: { type: "write", from: ["fulfilled"], to: "fulfilled", settlement: settlementAt(2) },
  finish: { type: "write", from: ["fulfilled"], to: "fulfilled", settlement: settlementAt(1), final: true },
  reverse: { type: "write", from: ["fulfilled"], to: "void", reason: "reversed" },
} as const satisfies Record<string, Write>;

const COMPLETE = { type: "complete", settlement: null } as const;
const COMPLETE_AT_ONCE = { type: "complete", settlement: settlementAt(2) } as const;
const SOLD = [WRITES.leave, WRITES.settle, COMPLETE];
const ROWS: Readonly<Record<string, readonly (Write | typeof COMPLETE | typeof COMPLETE_AT_ONCE)[]>> = {
  received: [],
  settling: [WRITES.leave],
  settled: [WRITES.leave, WRITES.settle],
  fulfilled: SOLD,
  "fulfilled directly": [WRITES.leave, COMPLETE_AT_ONCE],
  "fulfilled, moved": [...SOLD, WRITES.move],
  "fulfilled, final": [...SOLD, WRITES.finish],
  "void, refused": [WRITES.refuse],
  "void, expired": [WRITES.leave, WRITES.expire],
  "void, reverted": [WRITES.leave, WRITES.revert],
  "void, reverted after it had settled": [WRITES.leave, WRITES.settle, WRITES.revert],
  "void, reversed": [...SOLD, WRITES.reverse],
};

type Statement = Exclude<
  Process["command"],
  { type: "check" | "wait" | "free" | "preflight" | "look" | "submit" | "handle" }
>;
const STATES: readonly State[] = ["received", "settling", "settled", "fulfilled", "void"];
const STATEMENTS: readonly Statement[] = [
  { type: "insert" },
  { type: "revive" },
  { type: "release", failed: true },
  ...STATES.map((seen) => ({ type: "take", seen }) as const),
  ...Object.values(WRITES),
  { type: "write", from: ["settling"], to: "received" },
  COMPLETE,
  COMPLETE_AT_ONCE,
];

const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl, 4));
const journal = createJournal(pool, createSeal(Buffer.alloc(32, 3)));
const owner = await forFile(new pg.Client({ connectionString: database.ownerUrl }));
await owner.connect();

/** Runs a statement in PostgreSQL. Returns the number of rows that it changed. */
function run(command: Statement, payment: NewPayment, token: string): Promise<Entered> {
  const { key } = payment;
  switch (command.type) {
    case "insert":
      return journal.insert(payment, token);
    case "take":
      return journal.take(key, command.seen, token);
    case "revive":
      return journal.revive(key, token, payment);
    case "release":
      return journal.release(key, token, command.failed);
    case "write": {
      const settlement = command.settlement && real(command.settlement.block);
      const kept = isLeaving(command) ? { kept: payment } : {};
      return journal.write(key, token, { ...command, ...(settlement && { settlement }), ...kept });
    }
    case "complete":
      return complete(payment, token, command.settlement);
    default:
      return command satisfies never;
  }
}

async function complete({ key }: NewPayment, token: string, settlement: Settlement | null): Promise<number> {
  const ended = { completion: answered(response), settlement: settlement && real(settlement.block) };
  return (await journal.complete(key, token, ended)) === null ? 0 : 1;
}

const processOf = (command: Statement, sent: Sent, holds: boolean): Process => ({
  sent,
  slot: sent.authorization,
  run: START,
  command,
  holds,
  tookDead: false,
  hasNoted: false,
});

/** Runs the same statement in the model. */
const model = (
  now: Surroundings,
  command: Statement,
  { sent, holds }: { readonly sent: Sent; readonly holds: boolean },
) => execute(now, processOf(command, sent, holds), null);

const inShort = (row: Row | null) =>
  row && {
    state: row.state,
    reason: row.reason,
    paymentId: row.paymentId,
    leaseLive: row.leaseLive,
    place: row.settlement?.block ?? 0,
    final: row.final,
    revived: row.revived,
    location: row.response?.location ?? null,
  };

/** Brings one row to the same state in both journals, by the same statements under one token. */
async function prepare(writes: (typeof ROWS)[string], leaseLive: boolean) {
  const [payment, token] = [newPayment({ paymentId: "X" }), randomUUID()];
  let now = beginning(WORLD);
  for (const command of [{ type: "insert" } as const, ...writes]) {
    expect(await run(command, payment, token)).toBe(1);
    now = model(now, command, { sent: FIRST, holds: true }).after;
  }
  const until = leaseLive ? "infinity" : "2020-01-01";
  await owner.query("UPDATE payment SET lease_until = $2, next_attempt_at = '-infinity' WHERE nonce = $1", [
    binary(payment.key.nonce),
    until,
  ]);
  const [row] = now.rows;
  return { payment, token, now: withRow(now, 0, row ? { ...row, leaseLive } : null) };
}

describe.each(Object.entries(ROWS))("A row that is %s", (_, writes) => {
  describe.each([true, false])("Live lease: %s", (leaseLive) => {
    test.each([true, false])("Each statement changes the row as in the model (token current: %s)", async (holds) => {
      for (const command of STATEMENTS) {
        const { payment, token, now } = await prepare(writes, leaseLive);
        const rows = await run(command, payment, holds ? token : randomUUID());
        const expected = model(now, command, { sent: FIRST, holds });
        const { row } = await journal.find(payment.key, null);
        const modelled = find(expected.after, FIRST, null).row;
        expect({ command, rows, row: inShort(row) }).toEqual({ command, rows: expected.rows, row: inShort(modelled) });
      }
    });

    test.each([true, false])("A heartbeat extends the lease as in the model (token current: %s)", async (holds) => {
      const { payment, token, now } = await prepare(writes, leaseLive);
      const rows = await journal.heartbeat(payment.key, holds ? token : randomUUID());
      const [row] = now.rows;
      const asleep = withRow(now, 0, row ? { ...row, leaseLive: false } : null);
      const isAlive = row?.state === "received" && row.leaseLive && holds;
      expect(rows).toBe(isAlive ? 1 : heartbeat(asleep, processOf({ type: "revive" }, FIRST, holds)).length);
    });

    test("The row is due as in the model", async () => {
      const { payment, now } = await prepare(writes, leaseLive);
      const due = (await journal.due(10_000)).some(({ key }) => key.nonce === payment.key.nonce);
      expect(due).toBe(resolve(AS_BUILT, now).length > 0);
    });

    test.each(["its block", "another block"])(
      "The row is marked final as in the model if %s is final",
      async (block) => {
        const { payment, token, now } = await prepare(writes, leaseLive);
        const { row } = await journal.find(payment.key, null);
        const place = (row?.settlement?.block ?? 0) + (block === "another block" ? 1 : 0);
        const [marked] = finalize(AS_BUILT, withAuthorization(now, 0, { onChain: "paid, final", place }));
        const { key } = payment;
        expect(await journal.finalize([{ key, settlement: real(place) }])).toBe(marked ? 1 : 0);
        const found = await journal.find(key, null);
        expect(inShort(found.row)).toEqual(inShort(find(marked?.after ?? now, FIRST, null).row));
        if (marked) expect([await journal.signature(key), await journal.release(key, token, false)]).toEqual([null, 0]);
      },
    );

    test("The row's identifier is freed as in the model", async () => {
      const { payment, now } = await prepare(writes, leaseLive);
      const rows = await journal.free(payment.key);
      const expected = execute(
        now,
        { ...processOf({ type: "insert" }, SECOND, false), command: { type: "free" } },
        null,
      );
      const { row } = await journal.find(payment.key, null);
      expect([rows, inShort(row)]).toEqual([expected.rows, inShort(find(expected.after, FIRST, null).row)]);
    });

    test("The row is found by its authorization and identifier as in the model", async () => {
      const { payment, now } = await prepare(writes, leaseLive);
      const other = newPayment({ payer: payment.key.payer, paymentId: "X" });
      for (const [sent, asked] of [[FIRST, payment] as const, [SECOND, other] as const]) {
        const found = await journal.find(asked.key, "X");
        const modelled = find(now, sent, null);
        expect(inShort(found.row)).toEqual(inShort(modelled.row));
        expect(inShort(found.sameId)).toEqual(inShort(modelled.sameId));
      }
      const { rows } = model(now, { type: "insert" }, { sent: SECOND, holds: false });
      expect(await run({ type: "insert" }, other, randomUUID())).toBe(rows);
    });
  });
});
