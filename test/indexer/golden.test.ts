import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { type Columns, columnsOf, expectColumns } from "../../indexer/columns.ts";
import escrowColumns from "../../indexer/escrows/columns.json" with { type: "json" };
import { ESCROW_ROWS_VERSION } from "../../indexer/escrows/rows-version.ts";
import { ROWS_VERSION } from "../../indexer/rows-version.ts";
import { FEE_RECIPIENT } from "../support/escrow/contract.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { type RecordedChain, replayChain } from "./golden-chain.ts";
import { recordStory } from "./golden-story.ts";

// One recorded chain, indexed in two scopes (the third has what `selective` has but for two tables): the rows of a version are the same for good, those of the payments as well as
// those of the escrows. Recorded once, with GOLDEN=write, which never overwrites.

vi.setConfig({ testTimeout: 180_000 });
const CHAIN = join(import.meta.dirname, "golden-chain.json.gz");
const ROWS = join(import.meta.dirname, "golden-rows.json");
const SCOPES = ["full", "selective"] as const;
const WRITES = process.env.GOLDEN === "write";
const ADVICE = `The index differs from what version ${ROWS_VERSION} says. If that is meant, raise ROWS_VERSION in indexer/rows-version.ts (of the escrows: ESCROW_ROWS_VERSION) and run this test once with GOLDEN=write; if not, every operator's index would be refused, or be a mixture`;

type Golden = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

if (WRITES && !existsSync(CHAIN)) writeFileSync(CHAIN, gzipSync(JSON.stringify(await recordStory())));
const recorded: RecordedChain = JSON.parse(gunzipSync(readFileSync(CHAIN)).toString());
const node = await forFile(replayChain(recorded).then((server) => ({ ...server, stop: () => server.stop() })));

/** Of each table how many rows there are, and a hash of them; the views; the version that Ponder compares an index by. */
async function describeIndex(db: pg.Pool, schema: string, columns: Columns): Promise<object> {
  await expectColumns(db, schema, columns);
  const tables: Record<string, string> = {};
  // `head` is about the blocks of this run.
  for (const [table, described] of Object.entries(columns).filter(([name]) => name !== "head")) {
    const keys = described.filter((column) => column.includes(" key ")).map((column) => column.split(" ")[0]);
    const { rows } = await db.query(
      `select to_jsonb(r)::text as row from ${schema}.${table} r order by ${keys.join()}`,
    );
    const hash = createHash("sha256").update(JSON.stringify(rows.map(({ row }) => row)));
    tables[table] = `${rows.length} rows, ${hash.digest("hex").slice(0, 16)}`;
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

interface Described {
  readonly payments: object;
  readonly escrows: object;
}

async function indexIn(scope: (typeof SCOPES)[number]): Promise<Described> {
  const { ownerUrl } = await freshDatabase();
  const db = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 1 }));
  const launched = await forFile(
    launchIndexer({
      ...{ DATABASE_URL: ownerUrl, BASE_RPC_URL: node.url, INDEX_SCOPE: scope, START_BLOCK: "0", EXCLUSIVE: "1" },
      ...{ PAY_TO_ADDRESS: FEE_RECIPIENT, ESCROW_ADDRESSES: recorded.escrows.join() },
    }),
  );
  const described = async (message: string, columns: Columns) => {
    await launched.saying(message);
    return describeIndex(db, String(launched.said(message)[0]?.schema), columns);
  };
  return {
    payments: await described("index ready", columnsOf(scope)),
    escrows: await described("escrow index ready", escrowColumns),
  };
}

test("the rows of each version are what they were when it was made", async () => {
  const found = await Promise.all(SCOPES.map(async (scope) => [scope, await indexIn(scope)] as const));
  const payments = Object.fromEntries(found.map(([scope, { payments }]) => [scope, payments]));
  const [escrows, again] = found.map(([, described]) => described.escrows);
  expect(again).toEqual(escrows);
  const [version, escrowVersion] = [String(ROWS_VERSION), `escrows ${ESCROW_ROWS_VERSION}`];
  const known: Golden = existsSync(ROWS) ? JSON.parse(readFileSync(ROWS, "utf8")) : {};
  const added = WRITES ? { [version]: payments, [escrowVersion]: escrows, ...known } : known;
  if (WRITES) writeFileSync(ROWS, `${JSON.stringify(added, null, 2)}\n`);
  expect({ payments, escrows }, ADVICE).toEqual({ payments: added[version], escrows: added[escrowVersion] });
});
