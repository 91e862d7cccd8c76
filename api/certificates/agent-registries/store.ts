import type pg from "pg";
import { bytes, hex, inTransaction, lock, type Statement } from "../../platform/db/connection.ts";
import { MAIN_NETWORK, NETWORKS } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { RegistryOrder } from "./order.ts";
import type { MinedIn, Publication, PublicationReason, PublicationState, Registry } from "./publication.ts";

const TAKEN = "interval '1 min'";
const OPEN = "state NOT IN ('published', 'withdrawn', 'refused', 'failed')";
const TODAY = "(now() AT TIME ZONE 'UTC')::date";
/** One agent's share of a day's gas is a fourth. */
const SHARES = 4;

interface Columns {
  certificate: string;
  registry: Registry;
  contract: Buffer;
  agent: string;
  request: Buffer | null;
  from_block: string;
  state: PublicationState;
  attempt: number;
  reason: PublicationReason | null;
  publisher: Buffer | null;
  feedback_index: string | null;
  tx: Buffer | null;
  withdrawal_tx: Buffer | null;
  block_number: string | null;
  block_hash: Buffer | null;
}

const INSERT = `INSERT INTO publication (certificate, registry, chain, contract, agent, request, from_block)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`;

/**
 * Tests that no payment behind the certificate can still change: `final_at` is set once a payment is final or
 * permanently gone.
 */
const SETTLED = `NOT EXISTS (SELECT FROM certificate c JOIN payment p
    ON p.chain = c.chain AND p.asset = c.asset AND p.payer = c.wallet AND p.nonce IN (c.nonce, c.also_nonce, c.third_nonce)
  WHERE c.id = publication.certificate AND p.final_at IS NULL)`;

const TAKE = `UPDATE publication SET next_attempt_at = now() + ${TAKEN} WHERE (certificate, registry) IN (
    SELECT certificate, registry FROM publication WHERE ${OPEN} AND next_attempt_at <= now()
    ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING *, extract(epoch FROM now() - ordered_at)::float8 AS "ageSeconds", ${SETTLED} AS "isSettled"`;

/** Keeps the withdrawal's transaction separate from the publication's. Forgets whatever a reorganization undid. */
const CHANGE = `UPDATE publication SET state = $4, next_attempt_at = now() + make_interval(secs => $5),
    reason = coalesce($6, reason), attempt = coalesce($7, attempt),
    tx = CASE WHEN $4 IN ('mined', 'sending') THEN $8 ELSE tx END,
    withdrawal_tx = CASE WHEN $4 IN ('withdrawal_mined', 'withdrawing') THEN $8 ELSE withdrawal_tx END,
    block_number = $9, block_hash = $10,
    publisher = coalesce($11, publisher),
    feedback_index = CASE WHEN $4 IN ('mined', 'sending') THEN $12 ELSE feedback_index END,
    charged = greatest(0, charged - $13::bigint)
  WHERE certificate = $1 AND registry = $2 AND state = $3`;

const spentToday = (condition = "true") =>
  `(SELECT coalesce(sum(charged), 0) FROM publication WHERE charged_on = ${TODAY} AND ${condition})`;
/** Runs under a lock, so that processes do not spend the same gas. */
const CHARGE = `UPDATE publication SET charged = $3::bigint + CASE WHEN charged_on = ${TODAY} THEN charged ELSE 0 END,
    charged_on = ${TODAY}
  WHERE certificate = $1 AND registry = $2 AND ($4::bigint IS NULL OR (
    ${spentToday()} + $3::bigint <= $4::bigint
    AND ${spentToday("agent = $5")} + $3::bigint <= greatest($4::bigint / ${SHARES}, $3::bigint)))`;

const keyOf = ({ certificate, registry }: Publication) => [certificate, registry];

const changeValues = (publication: Publication, to: Change) => [
  ...keyOf(publication),
  publication.state,
  to.state,
  to.lookInSeconds ?? 0,
  to.reason ?? null,
  to.attempt ?? null,
  to.place ? bytes(to.place.transaction) : null,
  to.place?.block ?? null,
  to.place ? bytes(to.place.blockHash) : null,
  to.publisher ? bytes(to.publisher) : null,
  to.feedbackIndex?.toString() ?? null,
  String(to.unspent ?? 0n),
];

class NotCharged extends Error {}

export type PublicationStore = ReturnType<typeof createPublicationStore>;

/**
 * Creates the store of publications in ERC-8004 registries, one per certificate and registry, and of the credentials
 * that they name.
 */
export function createPublicationStore(pool: pg.Pool) {
  return {
    /** Returns the writes of an order, for the transaction of its sale. */
    ordering(
      certificate: string,
      { agentId, reputation, validation }: RegistryOrder,
      fromBlock: number,
    ): readonly Statement[] {
      const insert = (registry: Registry, contract: Address, request: Hex | null): Statement => {
        const { chainId } = NETWORKS[MAIN_NETWORK];
        const of = [certificate, registry, chainId, bytes(contract), agentId, request && bytes(request), fromBlock];
        return { text: INSERT, values: of };
      };
      const feedback = insert("reputation", reputation, null);
      return validation === null
        ? [feedback]
        : [feedback, insert("validation", validation.contract, validation.request)];
    },

    async of(certificate: string): Promise<readonly Publication[]> {
      const { rows } = await pool.query<Columns>({
        name: "publications-of",
        text: "SELECT * FROM publication WHERE certificate = $1 ORDER BY registry",
        values: [certificate],
      });
      return rows.map(parse);
    },

    /** Claims the publications that are due, each for a minute. */
    async take(limit: number): Promise<readonly Due[]> {
      const { rows } = await pool.query<Columns & Pick<Due, "ageSeconds" | "isSettled">>(TAKE, [limit]);
      return rows.map((row) => ({ ...parse(row), ageSeconds: row.ageSeconds, isSettled: row.isSettled }));
    },

    async lookAgain(publication: Publication, seconds: number): Promise<void> {
      await pool.query(
        `UPDATE publication SET next_attempt_at = now() + make_interval(secs => $4)
         WHERE certificate = $1 AND registry = $2 AND state = $3`,
        [...keyOf(publication), publication.state, seconds],
      );
    },

    /** Changes a publication that is still in the state it was read in. Returns false if another process was faster. */
    async change(publication: Publication, to: Change): Promise<boolean> {
      return (await pool.query(CHANGE, changeValues(publication, to))).rowCount === 1;
    },

    /** Does the same and charges for it. Also returns false if the day's gas is spent. */
    charge: (publication: Publication, to: Change, { gas, perDay }: Allowed): Promise<boolean> =>
      inTransaction(pool, async (client) => {
        await lock(client, "gas of publications");
        const most = perDay === null ? null : perDay.toString();
        const values = [...keyOf(publication), gas.toString(), most, publication.agent.toString()];
        const { rowCount: charged } = await client.query(CHARGE, values);
        const { rowCount: changed } = await client.query(CHANGE, changeValues(publication, to));
        if (charged !== 1 || changed !== 1) throw new NotCharged();
        return true;
      }).catch((error: unknown) => {
        if (error instanceof NotCharged) return false;
        throw error;
      }),

    /** Stores the first document given for a certificate permanently, and returns it. */
    async keep(certificate: string, document: string): Promise<string> {
      const { rows } = await pool.query<{ document: string }>(
        `WITH kept AS (INSERT INTO certificate_credential VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING document)
         SELECT document FROM kept UNION ALL SELECT document FROM certificate_credential WHERE certificate = $1`,
        [certificate, document],
      );
      return rows[0]?.document ?? document;
    },

    async document(certificate: string): Promise<string | null> {
      const { rows } = await pool.query<{ document: string }>(
        "SELECT document FROM certificate_credential WHERE certificate = $1",
        [certificate],
      );
      return rows[0]?.document ?? null;
    },
  };
}

const parse = (row: Columns): Publication => ({
  certificate: row.certificate,
  registry: row.registry,
  contract: hex(row.contract),
  agent: BigInt(row.agent),
  request: row.request && hex(row.request),
  fromBlock: Number(row.from_block),
  state: row.state,
  attempt: row.attempt,
  reason: row.reason,
  publisher: row.publisher && hex(row.publisher),
  feedbackIndex: row.feedback_index === null ? null : BigInt(row.feedback_index),
  transaction: row.tx && hex(row.tx),
  withdrawal: row.withdrawal_tx && hex(row.withdrawal_tx),
  place:
    row.block_number === null || row.block_hash === null
      ? null
      : { block: Number(row.block_number), blockHash: hex(row.block_hash) },
});

export interface Due extends Publication {
  readonly ageSeconds: number;
  /** Whether every payment behind its certificate is final or permanently gone. */
  readonly isSettled: boolean;
}

interface Change {
  readonly state: PublicationState;
  readonly lookInSeconds?: number;
  readonly reason?: PublicationReason;
  readonly attempt?: number;
  readonly place?: MinedIn;
  readonly publisher?: Address;
  readonly feedbackIndex?: bigint | null;
  /** The gas returned to the day's budget, because nothing was sent. */
  readonly unspent?: bigint;
}

interface Allowed {
  readonly gas: bigint;
  /**
   * The limit for all transactions of a day (UTC), of which one agent gets at most a quarter. Null if the step must not
   * be refused.
   */
  readonly perDay: bigint | null;
}
