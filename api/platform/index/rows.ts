// How the index stores what is read, in SQL (indexer/ponder.schema.ts).

/** An address that is given as text, as the key of a row. */
export const keyOf = (address: string): string => `decode(substr(${address}::text, 3), 'hex')`;

/** Bytes as text with `0x`. */
export const textOf = (column: string): string => `'0x' || encode(${column}, 'hex')`;

/**
 * What wallet `me` got from `other`, in columns of the key's type. In scope `selective` `paid` says who got what, but for what
 * was held before the index began. `offset 0` is a fence: without it the planner scans all of a wallet's rows. The addresses
 * are in the order of the key.
 */
export const receivedIn = (views: string, { me, other }: { readonly me: string; readonly other: string }): string => `
  coalesce((select case when ${me} = low then down_atomic else up_atomic end from (select * from ${views}.pair
    where low = least(${me}, ${other}) and high = greatest(${me}, ${other}) offset 0) r), 0)
    + case reach.scope when 'full' then 0 else coalesce((select atomic - unpaid_atomic
      from (select * from ${views}.paid where payer = ${other} and payee = ${me} offset 0) b), 0) end`;
