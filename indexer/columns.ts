import payments from "./columns.json" with { type: "json" };
import selective from "./columns-selective.json" with { type: "json" };
import type { Scope } from "./ledger.ts";
import type { Queryable } from "./schemas.ts";

/** An index has other tables than this release fills: one of the two is wrong, and writing would only make it worse. */
export class OtherColumnsError extends Error {
  override readonly name = "OtherColumnsError";
}

/** A table's columns with type and constraint, key columns marked, in the order of their names. */
export type Columns = Readonly<Record<string, readonly string[]>>;

/** The tables of an index of payments in a scope. */
export const columnsOf = (scope: Scope): Columns => (scope === "selective" ? { ...payments, ...selective } : payments);

/**
 * Compares the tables of an index with those that this release fills (columns.json of its root, which tables.ts is
 * tested against: Ponder itself takes longer to load than a comparison may).
 * @throws OtherColumnsError if Ponder has made them, and differently
 */
export async function expectColumns(db: Queryable, schema: string, expected: Columns = payments): Promise<void> {
  const found = await readColumns(db, schema);
  if (Object.keys(found).length === 0) return;
  const differences = Object.entries(expected).flatMap(([table, columns]) => {
    const has = found[table] ?? [];
    return [
      ...columns.filter((column) => !has.includes(column)).map((column) => `${table} lacks "${column}"`),
      ...has.filter((column) => !columns.includes(column)).map((column) => `${table} has "${column}"`),
    ];
  });
  if (differences.length > 0)
    throw new OtherColumnsError(
      `The index ${schema} has other columns than this release fills: ${differences.join("; ")}. Nothing was changed. Run the release that made it, or drop it with npm run index:drop; the next start makes a new one.`,
    );
}

/** The columns of the tables that Ponder has made in a schema. */
async function readColumns(db: Queryable, schema: string): Promise<Columns> {
  const { rows } = await db.query<{ table: string; columns: readonly string[] }>(
    `select relname as "table", array_agg(attname || ' ' || format_type(atttypid, atttypmod)
        || case when attnotnull then ' not null' else '' end
        || case when attnum = any(indkey) then ' key ' || array_position(indkey::int2[], attnum) else '' end
        order by attname) as columns
      from pg_class join pg_namespace n on n.oid = relnamespace join pg_attribute on attrelid = pg_class.oid
      left join pg_index on indrelid = pg_class.oid and indisprimary
      where nspname = $1 and relkind = 'r' and attnum > 0 and not attisdropped
        and relname !~ '^(_reorg__|_ponder_)' and relname <> 'own_address'
      group by relname`,
    [schema],
  );
  return Object.fromEntries(rows.map(({ table, columns }) => [table, columns]));
}
