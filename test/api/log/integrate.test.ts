import { describe, expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { CHECKPOINTS_AGE, certificateInsert, logOn, logStage, writerOn } from "../../support/log/stage.ts";

const LATE = "0".repeat(15);
/** Queues a row as a sale does, in a transaction that the test controls. */
const QUEUE = "INSERT INTO log_pending (type, ref) VALUES ('policy', $1)";
const KNOWN = ["1", "2", "3"].map((ref) => ({ type: "policy" as const, ref, members: { type: "PublishedPolicy" } }));

describe("integration of records", () => {
  test("Records are logged once each, in the order of the queue", async () => {
    const at = await logStage();
    const first = await at.add(3);
    expect(await at.integrate()).toBe(3);
    const second = await at.add(300);
    await at.seeds.reverse(first[0] as string);
    await at.seeds.reverse(first[0] as string);
    expect(await at.integrate()).toBe(301);
    await at.seeds.reverse(first[0] as string);
    expect(await at.integrate()).toBe(0);
    const found = await Promise.all([...first, ...second].map((id) => at.log.store.find("certificate", id)));
    expect(found.map((entry) => entry?.index)).toEqual(Array.from({ length: 303 }, (_, index) => index));
    const reversed = await at.log.store.findAll(first[0] as string, ["certificate", "reversal"]);
    expect(reversed.map(({ index }) => index)).toEqual([0, 303]);
    expect([await at.audit(), await at.queued(), at.log.errors]).toEqual([[], 0, []]);
  });

  test("Records that are rolled back leave no entry, and late commits still get one", async () => {
    const at = await logStage({ announced: KNOWN });
    expect(await at.integrate()).toBe(3);
    const [late, undone] = await Promise.all([at.pool.connect(), at.pool.connect()]);
    await late.query("BEGIN");
    await undone.query("BEGIN");
    for (const [client, digit] of [
      [late, "a"],
      [undone, "b"],
    ] as const)
      await client.query(certificateInsert(`${LATE}${digit}`));
    const [between] = await at.add(1);
    expect(await at.integrate()).toBe(1);
    await late.query("COMMIT");
    await undone.query("ROLLBACK");
    late.release();
    undone.release();
    expect(await at.integrate()).toBe(1);
    const indices = [between, `${LATE}a`, `${LATE}b`].map(
      async (id) => (await at.log.store.find("certificate", id as string))?.index ?? null,
    );
    expect(await Promise.all(indices)).toEqual([3, 4, null]);
    expect([await at.audit(), await at.queued()]).toEqual([[], 0]);
  });

  test("A reversal committed together with its certificate is logged after the next start", async () => {
    const at = await logStage();
    const [id = ""] = await at.add(1);
    expect(await at.integrate()).toBe(1);
    await at.owner.query("ALTER TABLE settlement_mark DISABLE TRIGGER queue");
    await at.seeds.reverse(id);
    await at.owner.query("ALTER TABLE settlement_mark ENABLE TRIGGER queue");
    expect(await at.integrate()).toBe(0);
    const restarted = await logOn(await forFile(connect(at.database.apiUrl)));
    expect([await at.integrate(restarted), await at.integrate(restarted)]).toEqual([1, 0]);
    expect(await at.log.store.find("reversal", id)).toMatchObject({ index: 1 });
    expect([await at.audit(), await at.queued()]).toEqual([[], 0]);
  });

  test("Records that cannot be logged are reported once and do not hold up the others", async () => {
    const at = await logStage();
    await at.owner.query(QUEUE, ["of another release"]);
    await at.owner.query("INSERT INTO log_pending (type, ref) VALUES ('certificate', 'lost')");
    await at.add(2);
    expect([await at.integrate(), await at.integrate()]).toEqual([2, 0]);
    expect(at.log.errors).toEqual([expect.stringContaining("of another release"), expect.stringContaining("lost")]);
    expect([await at.audit(), await at.queued()]).toEqual([[], 2]);
  });

  test("Records that cannot be logged take no turn, and a process also logs what only a newer one announced", async () => {
    const at = await logStage({ announced: KNOWN });
    await at.owner.query(QUEUE, ["of another release"]);
    let turns = 0;
    const writer = writerOn(at.pool);
    const counting: typeof writer = {
      ...writer,
      inTurn: (...of) => {
        turns++;
        return writer.inTurn(...of);
      },
    };
    const newer = await logOn(await forFile(connect(at.database.apiUrl)), {
      announced: [{ type: "policy", ref: "4", members: { type: "PublishedPolicy", rules: ["a"] } }],
      danger: async () => "it only announces",
    });
    expect(await newer.integrate()).toBe(0);
    const older = await logOn(at.pool, { announced: KNOWN, writer: counting });
    expect([await at.integrate(older), await at.integrate(older), turns]).toEqual([4, 0, 1]);
    const made = await at.log.store.find("policy", "4");
    expect(JSON.parse(String(made?.entry))).toMatchObject({ document: { type: "PublishedPolicy", rules: ["a"] } });
    expect([await at.audit(), await at.queued()]).toEqual([[], 1]);
  });

  test("Every change of the signing key is logged, including one back to an earlier key", async () => {
    const at = await logStage();
    const startWith = async (kid: string) => {
      const key = { type: "signing_key" as const, ref: kid, members: { type: "SigningKey", key: { kid } } };
      return at.integrate(await logOn(at.pool, { announced: [key] }));
    };
    const added: number[] = [];
    for (const kid of ["a", "a", "b", "b", "a", "a", "b", "a"]) added.push(await startWith(kid));
    expect(added).toEqual([1, 0, 1, 0, 1, 0, 1, 1]);
    const entries = (await at.log.store.entries(1, 0, 9)).map((entry) => JSON.parse(String(entry)));
    expect(entries.map(({ id, document }) => [id, document.key.kid])).toEqual([
      ["a", "a"],
      ["b", "b"],
      ["a#2", "a"],
      ["b#2", "b"],
      ["a#3", "a"],
    ]);
    expect(await at.audit()).toEqual([]);
  });

  test("A turn that fails at its end leaves no entry and no gap", async () => {
    const at = await logStage();
    const writer = writerOn(at.pool);
    let isLosing = true;
    const losing: typeof writer = {
      ...writer,
      inTurn: (generation, work) =>
        writer.inTurn(generation, async (turn) => {
          const done = await work(turn);
          if (isLosing) throw new Error("lost");
          return done;
        }),
    };
    const unlucky = await logOn(at.pool, { writer: losing });
    await at.add(3);
    await expect(at.integrate(unlucky)).rejects.toThrow("lost");
    for (const table of ["log_entry", "log_tile", "log_checkpoint"])
      expect([table, (await at.owner.query(`SELECT FROM ${table}`)).rowCount]).toEqual([table, 0]);
    // The process whose turn failed does not assume that it was written.
    isLosing = false;
    expect([await at.queued(), await at.integrate(unlucky), await at.audit()]).toEqual([3, 3, []]);
  });

  test("Several processes integrate concurrently without a gap or a duplicate", async () => {
    const at = await logStage();
    const others = await Promise.all([1, 2, 3].map(async () => logOn(await forFile(connect(at.database.apiUrl)))));
    let added = 0;
    for (let round = 0; round < 6; round++) {
      const adding = at.add(120);
      await at.owner.query(CHECKPOINTS_AGE);
      added += (await Promise.all([at.log, ...others].map((one) => one.integrate()))).reduce((sum, one) => sum + one);
      await adding;
    }
    added += await at.integrate();
    expect(added).toBe(720);
    expect([await at.audit(), await at.queued()]).toEqual([[], 0]);
  });

  test("If a process stalls in its turn until PostgreSQL ends it, another process takes over without a fork", async () => {
    const at = await logStage();
    const writer = writerOn(at.pool);
    const [reached, woken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const pausing: typeof writer = {
      ...writer,
      inTurn: (generation, work) =>
        writer.inTurn(generation, (turn) => {
          const publish: typeof turn.publish = async (...of) => {
            reached.resolve();
            await woken.promise;
            return turn.publish(...of);
          };
          return work({ ...turn, publish });
        }),
    };
    const paused = await logOn(at.pool, { writer: pausing });
    const other = await logOn(await forFile(connect(at.database.apiUrl)));
    expect(await at.integrate(other)).toBe(0);
    await at.add(1);
    const turn = at.integrate(paused).catch((error: Error) => error);
    // The stalled process has read, signed, and written its entry, but has not stored the checkpoint.
    await reached.promise;
    expect(await at.integrate(other)).toBe(0);
    // The server does the same after ten seconds (`idle_in_transaction_session_timeout`).
    await at.owner.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction'`);
    await eventually(() => at.integrate(other), 1);
    await at.add(2);
    expect(await at.integrate(other)).toBe(2);
    woken.resolve();
    expect(await turn).toBeInstanceOf(Error);
    await at.add(1);
    expect(await at.integrate(paused)).toBe(1);
    expect([await at.audit(), await at.queued()]).toEqual([[], 0]);
  });
});
