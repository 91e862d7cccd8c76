import type pg from "pg";
import type { Hex } from "../wallet.ts";
import { bytes, hex } from "../db/connection.ts";
import type { Question } from "../db/message.ts";

/**
 * The newest transaction for a purpose: its hash, the hash in which it was mined without success, or the hashes of one
 * whose nonce another transaction took.
 */
export type Carried = { readonly hash: Hex } | { readonly reverted: Hex } | { readonly lost: readonly Hex[] };

interface Row {
  readonly purpose: Buffer;
  readonly state: string;
  readonly hashes: Buffer[];
  readonly reverted: Buffer | null;
}

/** Its transaction reverted, or its call within one. */
const FAILED = "(relay.reverted OR member.purpose IN (SELECT relay.purposes[place] FROM unnest(relay.failed) place))";

/** What the transactions of one chain are for, no matter who sends them: the table `relay_member`. */
export const createMembers = (chainId: number) => ({
  /** What was sent for purposes, by purpose. */
  carried: (purposes: readonly Hex[]): Question<ReadonlyMap<Hex, Carried>> => ({
    statement: {
      name: "relay-carried",
      text: `SELECT member.purpose, state, hashes, CASE WHEN state <> 'sent' AND ${FAILED} THEN mined_hash END AS reverted
        FROM relay_member AS member JOIN relay ON relay.id = relay_id
        WHERE member.chain = $1 AND member.purpose = ANY($2::bytea[])`,
      values: [chainId, purposes.map(bytes)],
    },
    answer: ({ rows }: pg.QueryResult<Row>) => new Map(rows.map((row) => [hex(row.purpose), carriedIn(row)])),
  }),
});

function carriedIn({ state, hashes, reverted }: Row): Carried {
  if (state === "lost") return { lost: hashes.map(hex) };
  return reverted === null ? { hash: hashes.map(hex).at(-1) ?? "0x" } : { reverted: hex(reverted) };
}
