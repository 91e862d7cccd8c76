import pg from "pg";
import type { Completion, StoredAnswer } from "../../kernel/completion.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { PaymentKey } from "../../kernel/route.ts";
import { inTransaction } from "./connection.ts";
import { keyValues } from "./payment-row.ts";

/** Locks a queue, across all processes, until the transaction ends. */
export const takeQueue = (queue: string): string =>
  `SELECT pg_advisory_xact_lock(hashtext(${pg.escapeLiteral(queue)}))`;

/**
 * Waits for its turn within this process; otherwise every waiter would hold a connection while it waits for the queue's
 * lock. A failed turn does not affect the others.
 */
export function createTurns(): <T>(queue: string | undefined, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (queue, work) => {
    if (queue === undefined) return work();
    const turn = (last.get(queue) ?? Promise.resolve()).then(work);
    last.set(
      queue,
      turn.catch(() => undefined),
    );
    return turn;
  };
}

export interface Completing {
  readonly key: PaymentKey;
  readonly token: string;
  readonly completion: Completion;
}

/** Locks the row while its sale completes: a process that woke up too late finds it gone. */
const guardOf = ({ key: { network, asset, payer, nonce }, token }: Completing): string =>
  `SELECT 1 FROM payment WHERE chain = ${NETWORKS[network].chainId} AND ${[
    `asset = ${binary(asset)}`,
    `payer = ${binary(payer)}`,
    `nonce = ${binary(nonce)}`,
    `lease_token = ${pg.escapeLiteral(token)}`,
  ].join(" AND ")} AND state = 'settled' FOR UPDATE`;

const binary = (hex: string): string => pg.escapeLiteral(`\\x${hex.slice(2)}`);

const FULFIL = `UPDATE payment SET state = 'fulfilled', status = $5, response = $6, location = $7,
    lease_until = '-infinity', failures = 0, look_at = now() + interval '2 s'
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4`;

/** One transaction: the queue, the row, the sale's record, its answer. Null if another run owns the row by now. */
export async function completeSale(pool: pg.Pool, completing: Completing): Promise<StoredAnswer | null> {
  const { key, completion } = completing;
  const first = completion.queue === undefined ? [] : [takeQueue(completion.queue)];
  return inTransaction(
    pool,
    async (client, answers) => {
      if (answers.at(-1)?.rowCount !== 1) return null;
      const answer = await completion.complete(client);
      const values = [...keyValues(key), answer.status, answer.body, answer.location];
      await client.query({ name: "payment-fulfil", text: FULFIL, values });
      return answer;
    },
    [...first, guardOf(completing)],
  );
}
