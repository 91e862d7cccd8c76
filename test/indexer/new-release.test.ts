import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { createActivityIndex } from "../../api/adapters/index/activity.ts";
import { generateChain, walletAt } from "../../bench/index/generated-chain.ts";
import { serveChain } from "../../bench/index/rpc-server.ts";
import { writeCsv } from "../../bench/index/transfers-csv.ts";
import { shownSchema } from "../../indexer/succession.ts";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { folderForFile } from "../support/folder.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { environment, load } from "./preloaded.ts";
import { readTables } from "./score-recount.ts";

// Two releases keep an index each, of other rows versions, in one database.

vi.setConfig({ testTimeout: 150_000 });

const CHAIN = generateChain({ transfers: 300, perBlock: 5, endsAt: Math.floor(Date.now() / 1000) });
const SCOPE = "authorised";
const chain = await forFile(serveChain(CHAIN));
const database = await freshDatabase();
const db = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
const reader = await forFile(new pg.Pool({ connectionString: database.apiUrl, max: 2 }));
const env = environment({
  ...{ BASE_RPC_URL: chain.url, DATABASE_URL: database.ownerUrl, INDEX_HISTORY: "", EXCLUSIVE: "0" },
  INDEX_SCOPE: SCOPE,
});

/** This program as a release with other rows. */
async function nextRelease(): Promise<string> {
  const folder = join(await folderForFile("trust-release-"), "program");
  for (const part of ["api", "contracts", "indexer", "scripts", "packages", "package.json", "tsconfig.json"])
    cpSync(part, join(folder, part), { recursive: true, filter: (path) => !path.includes("node_modules") });
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const file = join(folder, "indexer/rows-version.ts");
  writeFileSync(file, readFileSync(file, "utf8").replace(/ROWS_VERSION = \d+/, "ROWS_VERSION = 1000"));
  return folder;
}

/** The rows of the whole chain, made by the loader of a history, which is other code. */
async function loadedRows(): Promise<object> {
  const { ownerUrl } = await freshDatabase();
  const pool = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 1 }));
  await pool.query("drop schema live cascade");
  const file = join(await folderForFile("trust-release-rows-"), "transfers.csv");
  await writeCsv(CHAIN, file);
  await load(ownerUrl, file, { INDEX_SCOPE: SCOPE, INDEX_HISTORY: "live" });
  return readTables(pool);
}

const schemas = async () =>
  (await db.query("select nspname from pg_namespace where nspname ~ '^live_' order by 1")).rows.map(
    (row) => row.nspname,
  );

test("a new rows version is made beside the index that serves, and the older release waits for it", async () => {
  // Before anything is sold: a copy keeps this process busy for longer than a reader waits for an answer.
  const release = await nextRelease();
  const older = await forFile(launchIndexer(env));
  await older.saying("index ready");
  const [first] = await schemas();

  const index = createActivityIndex(reader, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  const answer = () => index.activity(walletAt(0), new Date());
  // At its very first start it says where it is once it has the newest block.
  expect(await waitUntil(async () => (await answer()) !== null, 60_000)).toBe(true);
  const answers: unknown[] = [];
  let isOver = false;
  const selling = (async () => {
    for (; !isOver; await sleep(2)) answers.push(await answer());
  })();

  // Two readers that hang: one holds back the views, one the drop of what they showed.
  const [viewer, owner] = [await reader.connect(), await db.connect()];
  await viewer.query("begin; select from live.wallet_day");
  await owner.query(`begin; select from ${first}.paid`);
  const newer = await forFile(launchIndexer(env, release));
  await newer.saying("ponder started");
  process.kill(newer.ponderPid(), "SIGKILL");
  const breaksSwap = async () => {
    await db.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ~ 'lock_timeout.*drop view' and pid <> pg_backend_pid()",
    );
    return newer.said("the index could not be made available to readers").length > 0;
  };
  expect(await waitUntil(breaksSwap, 60_000)).toBe(true);
  expect(newer.said("index ready")).toEqual([]);
  await viewer.query("commit");
  viewer.release();
  await newer.saying("index ready");
  const second = String(newer.said("index ready")[0]?.schema);
  expect(await shownSchema(db, "live")).toBe(second);
  await older.saying("the indexer stopped and is restarting");
  expect(await schemas()).toContain(first);
  await owner.query("commit");
  owner.release();
  expect(await waitUntil(async () => !(await schemas()).includes(first), 60_000)).toBe(true);
  expect(await schemas()).toEqual([second]);
  isOver = true;
  await selling;
  expect(await readTables(db)).toEqual(await loadedRows());
  const sold = [...new Set(answers.map((one) => JSON.stringify(one)))];
  expect(sold).toEqual([expect.stringContaining(`"scope":"${SCOPE}"`)]);
});
