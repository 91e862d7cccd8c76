import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { ROWS_VERSION } from "../../indexer/history/rows.ts";
import { FEE_RECIPIENT } from "../support/escrow/contract.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { type RecordedChain, replayChain } from "./golden-chain.ts";
import { recordStory } from "./golden-story.ts";

// One recorded chain, indexed in both scopes. The rows of a version never change. They are recorded once with
// GOLDEN=write, which never overwrites.

vi.setConfig({ testTimeout: 180_000 });
const CHAIN = join(import.meta.dirname, "golden-chain.json.gz");
const ROWS = join(import.meta.dirname, "golden-rows.json");
const SCOPES = ["full", "selective"] as const;
const WRITES = process.env.GOLDEN === "write";
const ADVICE = `The index differs from the rows of version ${ROWS_VERSION}. If that is intended, raise ROWS_VERSION in indexer/history/rows.ts and run this test once with GOLDEN=write; if not, every operator's index would be a mixture`;

type Golden = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

if (WRITES && !existsSync(CHAIN)) writeFileSync(CHAIN, gzipSync(JSON.stringify(await recordStory())));
const recorded: RecordedChain = JSON.parse(gunzipSync(readFileSync(CHAIN)).toString());
const node = await forFile(replayChain(recorded).then((server) => ({ ...server, stop: () => server.stop() })));

/**
 * For each table its columns, its number of rows, and a hash of them; the views; and the version by which Ponder
 * compares an index.
 */
async function describeIndex(db: pg.Pool, schema: string): Promise<object> {
  const { rows: relations } = await db.query<{ name: string; columns: readonly string[]; keys: readonly string[] }>(
    `select relname as name, array_agg(attname || ' ' || format_type(atttypid, atttypmod)
        || case when attnotnull then ' not null' else '' end order by attnum) as columns,
        array_agg(attname::text order by attnum) filter (where attnum = any(indkey)) as keys
      from pg_class join pg_attribute on attrelid = pg_class.oid join pg_index on indrelid = pg_class.oid and indisprimary
      where relnamespace = to_regnamespace($1) and relkind = 'r' and attnum > 0 and not attisdropped and relname !~ '^_'
      group by relname order by relname`,
    [schema],
  );
  const tables: Record<string, string> = {};
  // `head` is about the blocks of this run.
  for (const { name, columns, keys } of relations.filter((relation) => relation.name !== "head")) {
    const { rows } = await db.query(`select to_jsonb(r)::text as row from ${schema}.${name} r order by ${keys.join()}`);
    const hash = createHash("sha256").update(JSON.stringify([columns, rows.map(({ row }) => row)]));
    tables[name] = `${rows.length} rows, ${hash.digest("hex").slice(0, 16)}`;
  }
  const views = await db.query("select viewname, definition from pg_views where schemaname = $1 order by viewname", [
    schema,
  ]);
  const { rows: meta } = await db.query(
    `select value ->> 'version' as version from ${schema}._ponder_meta where key = 'app'`,
  );
  const definitions = views.rows.map(({ viewname, definition }) => [
    viewname,
    definition.replaceAll(schema, "index").replace(/\s+/g, " ").trim(),
  ]);
  return { tables, views: Object.fromEntries(definitions), ponder: meta[0] };
}

async function indexIn(scope: (typeof SCOPES)[number]): Promise<object> {
  const { ownerUrl, indexerUrl } = await freshDatabase();
  const db = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 1 }));
  const launched = await forFile(
    launchIndexer({
      ...{ DATABASE_URL: indexerUrl, BASE_RPC_URL: node.url, INDEX_SCOPE: scope, START_BLOCK: "0" },
      ...{ PAY_TO_ADDRESS: FEE_RECIPIENT, ESCROW_ADDRESSES: recorded.escrows.join() },
    }),
  );
  await launched.untilLogged("index ready");
  return describeIndex(db, String(launched.logged("index ready")[0]?.schema));
}

test("The rows of each version are the same as when it was recorded", async () => {
  const found = Object.fromEntries(await Promise.all(SCOPES.map(async (scope) => [scope, await indexIn(scope)])));
  const version = String(ROWS_VERSION);
  const known: Golden = existsSync(ROWS) ? JSON.parse(readFileSync(ROWS, "utf8")) : {};
  const added = WRITES ? { [version]: found, ...known } : known;
  if (WRITES) writeFileSync(ROWS, `${JSON.stringify(added, null, 2)}\n`);
  expect(found, ADVICE).toEqual(added[version]);
});
