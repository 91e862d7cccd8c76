import type pg from "pg";
import { networkOf } from "../http/request.ts";

const HOUR_SECONDS = 3_600;
/** The clients of one network may use a tenth of the total, or as much as one client if that is more. */
const SHARE_OF_A_NETWORK = 10;

/** Takes one of the hour's requests, if any is left. Returns the seconds to the next hour, and the number taken. */
const TAKE = `WITH hour AS (SELECT floor(extract(epoch FROM now()) / ${HOUR_SECONDS})::int AS number,
      ceil(${HOUR_SECONDS} - extract(epoch FROM now())::numeric % ${HOUR_SECONDS})::int AS left),
  taken AS (INSERT INTO lookup_budget AS spent (hour, client, used) SELECT number, $1, 1 FROM hour WHERE $2 > 0
    ON CONFLICT (hour, client) DO UPDATE SET used = spent.used + 1 WHERE spent.used < $2 RETURNING used)
  SELECT "left" AS seconds, (SELECT count(*)::int FROM taken) AS taken FROM hour`;

export interface BudgetLimits {
  /** Requests to nodes per hour, for one client and in total. */
  readonly client: number;
  readonly all: number;
}

/** Counts requests to nodes across all processes. */
export type LookupBudget = ReturnType<typeof createLookupBudget>;

/** The budget is spent until the next hour. */
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
 * Creates the budget in PostgreSQL, across all processes. A refused request does not count against the total.
 * @param purpose distinguishes budgets; the score's look-ups have an empty one
 */
export function createLookupBudget(pool: pg.Pool, limits: BudgetLimits, purpose = "") {
  const take = async (client: string, limit: number) => {
    const { rows } = await pool.query<{ seconds: number; taken: number }>({
      name: "lookup-budget",
      text: TAKE,
      values: [client, limit],
    });
    return rows[0] ?? { seconds: HOUR_SECONDS, taken: 0 };
  };
  return {
    /** @throws BudgetSpent if this client's budget, or the total, is spent */
    async spend(client: string): Promise<void> {
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
