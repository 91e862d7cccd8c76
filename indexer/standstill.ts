import pg from "pg";

/** Ponder renews its lock every ten seconds, and it lapses 25 seconds after that. */
const LONGEST_MS = 15_000;
const TICK_MS = 1_000;

/**
 * From now on Ponder calls `end` instead of asking the database anything after it stood still: stopped by a signal, or with its
 * machine. Its lock may have lapsed, and another process may write the index, while this one remembers rows as they were.
 */
export function endAfterStandstill(end: () => void): void {
  let last = Date.now();
  const look = () => {
    const now = Date.now();
    if (now - last > LONGEST_MS) end();
    last = now;
  };
  setInterval(look, TICK_MS).unref();
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    look();
    return Reflect.apply(query, this, args);
  } as typeof query;
}
