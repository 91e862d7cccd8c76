import type pg from "pg";
import { networkOf } from "../http/request.ts";

const HOUR_SECONDS = 3_600;
/** The clients of one network have no more than so much of what all have, or what one client has. */
const SHARE_OF_A_NETWORK = 10;

/** Takes one of an hour's requests, if there is one left. Returns the seconds to the next hour, and what was taken. */
const TAKE = `WITH hour AS (SELECT floor(extract(epoch FROM now()) / ${HOUR_SECONDS})::int AS number,
      ceil(${HOUR_SECONDS} - extract(epoch FROM now())::numeric % ${HOUR_SECONDS})::int AS left),
  taken AS (INSERT INTO lookup_budget AS spent (hour, client, used) SELECT number, $1, 1 FROM hour WHERE $2 > 0
    ON CONFLICT (hour, client) DO UPDATE SET used = spent.used + 1 WHERE spent.used < $2 RETURNING used)
  SELECT "left" AS seconds, (SELECT count(*)::int FROM taken) AS taken FROM hour`;

export interface BudgetLimits {
  /** Requests to nodes in an hour: of one client, and of all together. */
  readonly client: number;
  readonly all: number;
}

/** Counts requests to nodes, for all processes. */
export interface LookupBudget {
  /** @throws BudgetSpent if this client, or all together, have had theirs */
  spend(client: string): Promise<void>;
}

/** There will be more after so many seconds. */
export class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";
  readonly whose: "client" | "all";
  readonly retryAfterSeconds: number;

  constructor(whose: "client" | "all", retryAfterSeconds: number) {
    super(`the look-ups of this hour are spent: ${whose}`);
    this.whose = whose;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * Counts in PostgreSQL, for all processes. What a client may not have is not taken from everybody either.
 * @param purpose tells one account from others; that of the score's look-ups has no name
 */
export function createLookupBudget(pool: pg.Pool, limits: BudgetLimits, purpose = ""): LookupBudget {
  const take = async (client: string, limit: number) => {
    const { rows } = await pool.query<{ seconds: number; taken: number }>({
      name: "lookup-budget",
      text: TAKE,
      values: [client, limit],
    });
    return rows[0] ?? { seconds: HOUR_SECONDS, taken: 0 };
  };
  return {
    async spend(client) {
      const own = await take(`${purpose}${client}`, limits.client);
      if (own.taken === 0) throw new BudgetSpent("client", own.seconds);
      const share = Math.max(limits.client, Math.floor(limits.all / SHARE_OF_A_NETWORK));
      const network = await take(`${purpose}network ${networkOf(client)}`, share);
      if (network.taken === 0) throw new BudgetSpent("client", network.seconds);
      const all = await take(purpose, limits.all);
      if (all.taken === 0) throw new BudgetSpent("all", all.seconds);
    },
  };
}
