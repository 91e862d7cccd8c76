import { LRUCache } from "lru-cache";
import type pg from "pg";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { named } from "../db/connection.ts";

export const LIMIT_SECONDS = 60;

/** A client that sends fewer requests per minute than this fraction of the limit costs no statement. */
const SHARED_PART = 40;
const MOST_CLIENTS = 50_000;

/** In the order of the key, so that two processes never deadlock. */
const ADD = `INSERT INTO request_count AS c (client, used, until)
    SELECT client, used, now() + interval '1 minute' FROM unnest($1::text[], $2::int[]) AS u (client, used) ORDER BY client
  ON CONFLICT (client) DO UPDATE SET used = excluded.used + CASE WHEN c.until > now() THEN c.used ELSE 0 END,
    until = CASE WHEN c.until > now() THEN c.until ELSE excluded.until END
  RETURNING client, used, extract(epoch FROM until - now())::float8 AS seconds`;

/** A client's use of its minute, in all processes. */
interface SharedCount {
  readonly client: string;
  readonly used: number;
  /** Until its minute ends, by the clock of the database, because the clocks of processes differ. */
  readonly seconds: number;
}

/** Adds requests to their clients' minutes, each client once. Returns the totals. */
async function share(
  pool: pg.Pool,
  added: readonly (readonly [client: string, requests: number])[],
): Promise<readonly SharedCount[]> {
  const values = [added.map(([client]) => client), added.map(([, requests]) => requests)];
  return (await pool.query<SharedCount>(named(ADD, values))).rows;
}

export interface Used {
  readonly left: number;
  /** The seconds until the client's minute ends. */
  readonly seconds: number;
  readonly isOver: boolean;
}

/**
 * Counts requests of clients across all processes. A request is counted in memory and never waits. After every few
 * requests of a client, they are added to the shared count, and its total replaces the local one. While the shared
 * count is unreachable, each process counts alone. The library's store for PostgreSQL would write a row for each
 * request, and uses the process's clock.
 * @param most the requests per minute allowed for each client
 */
export function createRateLimit(pool: pg.Pool, most: number): (client: string) => Promise<Used> {
  const limiter = new RateLimiterMemory({ points: most, duration: LIMIT_SECONDS });
  const chunk = Math.max(1, Math.floor(most / SHARED_PART));
  const unshared = new LRUCache<string, number>({ max: MOST_CLIENTS, ttl: LIMIT_SECONDS * 1_000 });
  const waiting = new Map<string, number>();
  let isSharing = false;

  const exchange = async () => {
    isSharing = true;
    while (waiting.size > 0) {
      const added = [...waiting];
      waiting.clear();
      for (const { client, used, seconds } of await share(pool, added).catch(() => [])) {
        const since = (waiting.get(client) ?? 0) + (unshared.get(client) ?? 0);
        await limiter.set(client, used + since, Math.max(1, Math.ceil(seconds)));
      }
    }
    isSharing = false;
  };
  const note = (client: string) => {
    const requests = (unshared.get(client) ?? 0) + 1;
    if (requests < chunk) {
      unshared.set(client, requests);
      return;
    }
    unshared.delete(client);
    if (waiting.size < MOST_CLIENTS) waiting.set(client, (waiting.get(client) ?? 0) + requests);
    if (!isSharing) void exchange();
  };
  return async (client) => {
    const state = await limiter.consume(client).catch((limit: unknown) => {
      if (limit instanceof RateLimiterRes) return limit;
      throw limit;
    });
    const isOver = state.consumedPoints > most;
    if (!isOver) note(client);
    return { left: state.remainingPoints, seconds: Math.ceil(state.msBeforeNext / 1_000), isOver };
  };
}
