import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { expect } from "vitest";

/** The sessions of indexers that hold a lock, and the names under which Ponders are connected. */
export async function sessions(db: pg.Pool): Promise<{ readonly holders: string[]; readonly writers: string[] }> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct application_name as name from pg_stat_activity
      where datname = current_database() and application_name ~ '^live_[0-9a-f]{8}_\\d+ [0-9a-f]{12}$'`,
  );
  const held = await db.query<{ name: string }>(
    `select application_name as name from pg_locks join pg_stat_activity using (pid)
      where locktype = 'advisory' and granted and datname = current_database() and application_name ^@ 'indexer '`,
  );
  return { holders: held.rows.map(({ name }) => name), writers: rows.map(({ name }) => name) };
}

export const holderOf = (name: string) => name.split(" ")[1] ?? "";

/** Until `work` has settled: at no moment do two Ponders write. */
export async function watching<T>(db: pg.Pool, work: Promise<T>): Promise<T> {
  let isOver = false;
  const watch = (async () => {
    for (; !isOver; await sleep(50)) {
      const ready = await db.query(
        `select application_name as name from pg_stat_activity
          where datname = current_database() and application_name ~ '^live_' and state <> 'idle'`,
      );
      expect(new Set(ready.rows.map(({ name }) => name)).size).toBeLessThanOrEqual(1);
    }
  })();
  const result = await work.finally(() => {
    isOver = true;
  });
  await watch;
  return result;
}
