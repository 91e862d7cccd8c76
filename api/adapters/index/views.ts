import pg from "pg";
import type { Config } from "../../config.ts";
import { escrowViewsOf } from "../../kernel/index-views.ts";

export interface IndexViews {
  readonly viewsSchema: string;
  /** Whether there are escrows, which have an index of their own beside that of the payments. */
  readonly hasEscrows?: boolean;
}

/** Where this service's index is. */
export const viewsOf = (config: Pick<Config, "indexViewsSchema" | "escrowAddresses">): IndexViews => ({
  viewsSchema: config.indexViewsSchema,
  hasEscrows: config.escrowAddresses.length > 0,
});

/**
 * SQL: at most one row, `block`, `at` and `apart`: how far the index is, of its two halves the one that is behind, and how
 * many blocks they are apart. No row while one of them cannot say.
 */
export function positionQuery({ viewsSchema, hasEscrows = false }: IndexViews): string {
  const payments = `${pg.escapeIdentifier(viewsSchema)}.position`;
  if (!hasEscrows) return `select block, at, 0::int8 as apart from ${payments}`;
  const escrows = `${pg.escapeIdentifier(escrowViewsOf(viewsSchema))}.position`;
  return `select least(p.block, e.block) as block, least(p.at, e.at) as at, abs(p.block - e.block) as apart
    from ${payments} p cross join ${escrows} e`;
}

/** For the name of a statement that reads how far the index is: a name stands for one text. */
export const viewsName = ({ viewsSchema, hasEscrows = false }: IndexViews): string =>
  hasEscrows ? `${viewsSchema} with escrows` : viewsSchema;
