import pg from "pg";
import { prefixOf } from "./choose-deployment.ts";
import type { Scope } from "./ledger.ts";
import { findSchema, type Queryable } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

// Which scope an index has when INDEX_SCOPE does not say. Another one would be another index: the one that serves would stand
// still, and be dropped in the end. So what is there goes before the default.

/**
 * The settings with the scope that they leave open: that of the index that is served, else of the history that it begins with,
 * else of an index that was begun.
 */
export async function withScope(settings: IndexerSettings, db: Queryable): Promise<IndexerSettings> {
  if (settings.isScopeGiven) return settings;
  const { viewsSchema, historySchema } = settings;
  const there =
    (await scopeIn(db, `${pg.escapeIdentifier(viewsSchema)}.coverage`)) ??
    (historySchema === null
      ? await begunScope(db, settings)
      : await scopeIn(db, `${pg.escapeIdentifier(historySchema)}.history`));
  return { ...settings, scope: there ?? settings.scope };
}

/** What a relation with a column `scope` says; null if it is not there. */
async function scopeIn(db: Queryable, relation: string): Promise<Scope | null> {
  const found = await db.query("select to_regclass($1) is not null as there", [relation]);
  if (found.rows[0]?.there !== true) return null;
  const { rows } = await db.query<{ scope: Scope }>(`select scope from ${relation}`);
  return rows[0]?.scope ?? null;
}

/** An index that is not ready yet may have taken days. */
async function begunScope(db: Queryable, settings: IndexerSettings): Promise<Scope | null> {
  for (const scope of ["full", "authorised"] as const)
    if ((await findSchema(db, prefixOf({ ...settings, scope }, null, 0))) !== null) return scope;
  return null;
}

const BLOCKS_A_DAY = 86_400 / 2;
/** USDC's transfers on Base, as estimated for 2026: no count was found. */
const TRANSFERS_A_DAY = [5e6, 10e6] as const;
/** With Ponder's copy of the chain, before it is pruned. */
const BYTES_A_TRANSFER = 2_600;
const TRANSFERS_A_SECOND = 3_000;

/** What an index of everything costs on Base, from so many blocks before the head on; each from a low to a high guess. */
export function costsOfFull(blocks: number): Readonly<Record<string, string | number>> {
  const days = blocks / BLOCKS_A_DAY;
  const range = (cost: (transfers: number) => number, digits = 0) =>
    TRANSFERS_A_DAY.map((transfers) => cost(transfers).toFixed(digits)).join(" to ");
  const gigabytes = (transfers: number) => (transfers * BYTES_A_TRANSFER) / 1e9;
  return {
    days: Number(days.toFixed(1)),
    gigabytesADay: range(gigabytes),
    gigabytes: range((transfers) => days * gigabytes(transfers)),
    hoursOfFirstSync: range((transfers) => (days * transfers) / TRANSFERS_A_SECOND / 3_600, 1),
  };
}
