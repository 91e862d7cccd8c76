import type pg from "pg";
import { bytes, hex, inTransaction, lock, named } from "../../platform/db/connection.ts";

const COLUMNS = "SELECT size, root, state, tx, block, at FROM log_anchor WHERE generation = $1";

/** A time in the future was written before the clock was set back, and counts as past. */
const BEGIN = `INSERT INTO log_anchor (generation, size, root, chain, state)
  SELECT $1, $2, $3, $4, 'sending' FROM log
  WHERE generation = $1 AND started_at NOT BETWEEN now() - make_interval(secs => $5) AND now()
    AND NOT EXISTS (SELECT FROM log_anchor WHERE generation = $1
      AND (size >= $2 OR at BETWEEN now() - make_interval(secs => $5) AND now() OR state IN ('sending', 'mined')))`;

const PROGRESS = "UPDATE log_anchor SET state = $3, tx = $4, block = $5 WHERE generation = $1 AND size = $2";

interface Columns {
  size: string;
  root: Buffer;
  state: AnchorState;
  tx: Buffer | null;
  block: string | null;
  at: Date;
}

export type AnchorStore = ReturnType<typeof createAnchorStore>;

/** The anchors, shared by all processes. @param chainId the chain of the anchors */
export function createAnchorStore(pool: pg.Pool, chainId: number) {
  const read = async (text: string, generation: number): Promise<Anchor | null> => {
    const { rows } = await pool.query<Columns>(named(text, [generation]));
    return rows[0] === undefined ? null : anchorOf(rows[0]);
  };
  return {
    /** Returns an anchor that is not final yet, or null. */
    open: (generation: number) =>
      read(`${COLUMNS} AND state IN ('sending', 'mined') ORDER BY size LIMIT 1`, generation),
    newest: (generation: number) => read(`${COLUMNS} ORDER BY size DESC LIMIT 1`, generation),
    /** Begins an anchor if none is open, the last one is old enough, and the log has grown since. */
    begin: (generation: number, { size, root }: Pick<Anchor, "size" | "root">, every: number): Promise<void> =>
      inTransaction(pool, async (client) => {
        // Without the lock, two processes could begin an anchor at the same time.
        await lock(client, "log anchor");
        await client.query(named(BEGIN, [generation, size, Buffer.from(root), chainId, every]));
      }),
    async progress(generation: number, size: number, { state, transaction, block }: Progress): Promise<void> {
      const tx = transaction === null ? null : bytes(transaction);
      await pool.query(named(PROGRESS, [generation, size, state, tx, block]));
    },
  };
}

const anchorOf = ({ size, root, state, tx, block, at }: Columns): Anchor => ({
  size: Number(size),
  root,
  state,
  transaction: tx === null ? null : hex(tx),
  block: block === null ? null : Number(block),
  at,
});

/** A size and a root of the log that are on the chain, or soon will be. */
export interface Anchor {
  readonly size: number;
  readonly root: Uint8Array;
  /** `sending` until it is mined, `final` once its block is final, `failed` if the chain rejects it permanently. */
  readonly state: AnchorState;
  readonly transaction: `0x${string}` | null;
  readonly block: number | null;
  readonly at: Date;
}

export type AnchorState = "sending" | "mined" | "final" | "failed";

export type Progress = Pick<Anchor, "state" | "transaction" | "block">;
