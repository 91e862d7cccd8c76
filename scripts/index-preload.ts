import { tmpdir } from "node:os";
import pg from "pg";
import { isAway } from "../api/platform/db/connection.ts";
import { connectChain } from "../indexer/chain.ts";
import { messageOf } from "../indexer/history/duck.ts";
import { loadHistory } from "../indexer/history/load.ts";
import { LastingError } from "../indexer/ledger.ts";
import { withOperators } from "../indexer/operators.ts";
import { parseSettings } from "../indexer/settings.ts";

const USAGE = `Usage: npm run index:preload -- <transfers.csv | transfers.csv.gz | folder> ...

Builds the index's rows from files of USDC transfers, in the schema INDEX_HISTORY. Configured like the indexer. The columns
are block, time, transaction, log_index, from, to, value, authorized. docs/index-history.md describes them.`;

async function preload(files: readonly string[]): Promise<string> {
  if (files.length === 0) throw new LastingError(USAGE);
  const given = parseSettings(process.env);
  if ("problem" in given) throw new LastingError(given.problem);
  const schema = given.historySchema;
  if (schema === null)
    throw new LastingError("INDEX_HISTORY is missing: expected the name of the schema to create, such as history");
  const settings = await withOperators(given, connectChain(...given.rpcUrls));
  const db = new pg.Client({ connectionString: given.databaseUrl, application_name: "index_preload" });
  db.on("error", () => undefined);
  await db.connect();
  try {
    const { firstBlock, lastBlock, scope } = await loadHistory({ db, files, schema, settings });
    return `${schema}: blocks ${firstBlock} to ${lastBlock}. Run the indexer with INDEX_HISTORY=${schema} and INDEX_SCOPE=${scope} to use it.`;
  } finally {
    await db.end();
  }
}

/** PostgreSQL rolls back, and DuckDB's folder is removed on exit. */
function stop(reason: string): never {
  console.error(`${reason}. Nothing was changed. Run this again`);
  process.exit(1);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop(`Ended by ${signal}`));
try {
  console.log(await preload(process.argv.slice(2)));
} catch (error) {
  if (isAway(error)) stop(`PostgreSQL closed the connection (${messageOf(error)})`);
  const advice = `Its temporary files are in ${tmpdir()}; if that is full, set TMPDIR to a folder on a larger disk`;
  const failure = `The history could not be created: ${messageOf(error)}. ${advice}`;
  console.error(error instanceof LastingError ? error.message : failure);
  process.exitCode = 1;
}
