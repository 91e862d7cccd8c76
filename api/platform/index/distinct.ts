/**
 * Distinct counterparties, or buyers, over days: `touched` of each day less those that an earlier day of the window had
 * already. The number at `day - first` of `ages` (`TouchedDay` in indexer/ledger.ts), or its last one, says how many
 * these are. To be selected with `seenBefore` of the same first day.
 */
export const DISTINCT = `coalesce(sum(touched - coalesce(
    get_byte(seen, 0) * 65536 + get_byte(seen, 1) * 256 + get_byte(seen, 2), 0)), 0)::int`;

/** Joined to a table with `day` and `ages`; `first` is the window's first day in SQL. */
export const seenBefore = (first: string): string => `left join lateral (
    select case when day - ${first} >= get_byte(ages, 0)
      then substr(ages, 3 * least(day - ${first} - get_byte(ages, 0), octet_length(ages) / 3 - 1) + 2, 3) end as seen) s
    on day > ${first}`;
