import type pg from "pg";
import { bytes, hex, inTransaction, lock, named } from "../../platform/db/connection.ts";

const COLUMNS = "SELECT size, root, state, tx, block, at FROM log_anchor WHERE generation = $1";

/** A time after now was written before the clock was set back: nobody waits until it has come. */
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

/** @param chainId of the chain that anchors are on */
export function createAnchorStore(pool: pg.Pool, chainId: number): AnchorStore {
  const read = async (text: string, generation: number): Promise<Anchor | null> => {
    const { rows } = await pool.query<Columns>(named(text, [generation]));
    return rows[0] === undefined ? null : anchorOf(rows[0]);
  };
  return {
    open: (generation) => read(`${COLUMNS} AND state IN ('sending', 'mined') ORDER BY size LIMIT 1`, generation),
    newest: (generation) => read(`${COLUMNS} ORDER BY size DESC LIMIT 1`, generation),
    begin: (generation, { size, root }, every) =>
      inTransaction(pool, async (client) => {
        // Without it, two processes would begin an anchor at once.
        await lock(client, "log anchor");
        await client.query(named(BEGIN, [generation, size, Buffer.from(root), chainId, every]));
      }),
    async progress(generation, size, { state, transaction, block }) {
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

/** A size and a root of the log that are, or are about to be, on the chain. */
export interface Anchor {
  readonly size: number;
  readonly root: Uint8Array;
  /** `sending` until a block has it, `final` once that block is. `failed`: the chain refuses it, for good. */
  readonly state: AnchorState;
  readonly transaction: `0x${string}` | null;
  readonly block: number | null;
  readonly at: Date;
}

export type AnchorState = "sending" | "mined" | "final" | "failed";

export interface Progress {
  readonly state: AnchorState;
  readonly transaction: `0x${string}` | null;
  readonly block: number | null;
}

/** Which anchors were made, shared by all processes. */
export interface AnchorStore {
  /** One that is not final yet; null if there is none. */
  open(generation: number): Promise<Anchor | null>;
  /** Begins one, if none is open, the last one is old enough, and the log has grown since. */
  begin(generation: number, head: { readonly size: number; readonly root: Uint8Array }, every: number): Promise<void>;
  progress(generation: number, size: number, progress: Progress): Promise<void>;
  newest(generation: number): Promise<Anchor | null>;
}

/** The contract that keeps anchors, written to by one account. */
export interface AnchorChain {
  /** Carries an anchor as far as it goes: what was sent for it before is not sent a second time. */
  carry(origin: string, anchor: Anchor): Promise<Progress>;
  /** The newest one of this account; null if there is none. Rejects while the chain does not answer. */
  newest(origin: string): Promise<{ readonly size: number; readonly root: Uint8Array; readonly block: number } | null>;
}
