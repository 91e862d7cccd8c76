/**
 * How the index of one rows version (indexer/rows-version.ts) stores what is read, in SQL. While a new version is made, the
 * views show the one before.
 */
export interface RowsShape {
  readonly name: string;
  /** What an address that is given as text is found by. Other shapes' columns do not compare with it: an error, no silence. */
  readonly key: (address: string) => string;
  /** Bytes as text with `0x`. */
  readonly text: (column: string) => string;
  /** The three bytes of `ages` (`TouchedDay` in indexer/ledger.ts) for an age; null or empty for 0. */
  readonly seen: (age: string) => string;
  /** What wallet `me` got from `other`, in columns of the key's type. */
  readonly received: (views: string, parties: { readonly me: string; readonly other: string }) => string;
}

/** `offset 0` is a fence: without it the planner scans all of a wallet's rows. The addresses are in the order of the key. */
const byPair = (views: string, { me, other }: { readonly me: string; readonly other: string }): string => `
  coalesce((select case when ${me} = low then down_atomic else up_atomic end from (select * from ${views}.pair
    where low = least(${me}, ${other}) and high = greatest(${me}, ${other}) offset 0) r), 0)`;

/** Text with `0x`, and base64 with a number for each age from 1 on. */
const TEXT: RowsShape = {
  name: "text",
  key: (address) => `${address}::text`,
  text: (column) => column,
  seen: (age) => `decode(substr(ages, 4 * least(${age}, octet_length(ages) / 4) - 3, 4), 'base64')`,
  received: byPair,
};

/** In the authorised scope `paid` says who got what, but for what was held before the index began. */
const BYTES: RowsShape = {
  name: "bytes",
  key: (address) => `decode(substr(${address}::text, 3), 'hex')`,
  text: (column) => `'0x' || encode(${column}, 'hex')`,
  seen: (age) => `case when ${age} >= get_byte(ages, 0)
    then substr(ages, 3 * least(${age} - get_byte(ages, 0), octet_length(ages) / 3 - 1) + 2, 3) end`,
  received: (views, { me, other }) => `${byPair(views, { me, other })}
    + case reach.scope when 'full' then 0 else coalesce((select atomic - unpaid_atomic
      from (select * from ${views}.paid where payer = ${other} and payee = ${me} offset 0) b), 0) end`,
};

/** The shape of a column of addresses, by its type in the database. */
export const shapeOf = (type: string | null): RowsShape => (type === "bytea" ? BYTES : TEXT);
