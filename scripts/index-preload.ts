import { tmpdir } from "node:os";
import pg from "pg";
import { connectChain, readHead, WrongChainError } from "../indexer/chain.ts";
import { messageOf } from "../indexer/history/duck.ts";
import { type History, isFinalOn, UnfitHistoryError } from "../indexer/history/history.ts";
import { loadHistory } from "../indexer/history/load.ts";
import { withOperators } from "../indexer/operators.ts";
import { type IndexerSettings, parseSettings } from "../indexer/settings.ts";

const USAGE = `Usage: npm run index:preload -- <transfers.csv | transfers.csv.gz | transfers.parquet | folder> ...

Builds the rows of the index from files of USDC transfers, in the schema INDEX_HISTORY. Configured like the indexer.
The columns: block, time, transaction, log_index, from, to, value, authorised. docs/index-history.md describes them.`;

async function preload(given: IndexerSettings, schema: string, files: readonly string[]): Promise<History> {
  const chain = connectChain(given.rpcUrl);
  const head = await readHead(chain);
  const db = new pg.Client({ connectionString: given.databaseUrl, application_name: "index_preload" });
  db.on("error", ({ message }) => stop(`PostgreSQL closed the connection (${message})`));
  await db.connect();
  try {
    const settings = await withOperators(given, chain, db);
    const accept = async (history: History) => {
      if (await isFinalOn(chain, head, history)) return;
      throw new UnfitHistoryError(`The last block in the files, ${history.lastBlock}, is not final on the node yet`);
    };
    return await loadHistory({ db, files, schema, settings, accept, tell: (line) => console.log(line) });
  } finally {
    await db.end();
  }
}

/** Ends at once: PostgreSQL takes back what is not committed, and DuckDB's folder is removed at the exit. */
function stop(reason: string): never {
  console.error(`${reason}. Nothing is half made; run this again`);
  process.exit(1);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop(`Ended by ${signal}`));

const files = process.argv.slice(2);
const settings = parseSettings(process.env);
try {
  if (files.length === 0) throw new UnfitHistoryError(USAGE);
  if ("problem" in settings) throw new UnfitHistoryError(settings.problem);
  if (settings.historySchema === null)
    throw new UnfitHistoryError("INDEX_HISTORY is missing: expected the name of the schema to create, like history");
  const { schema, scope, transfers, firstBlock, lastBlock } = await preload(settings, settings.historySchema, files);
  console.log(
    `${schema}: ${transfers} transfers, blocks ${firstBlock} to ${lastBlock}. Run the indexer with INDEX_HISTORY=${schema} and INDEX_SCOPE=${scope} to use it.`,
  );
} catch (error) {
  const isKnown = error instanceof UnfitHistoryError || error instanceof WrongChainError;
  console.error(
    isKnown
      ? error.message
      : `The history could not be created: ${messageOf(error)}. Its temporary files are in ${tmpdir()}; if that is full, set TMPDIR to a folder on a larger disk`,
  );
  process.exitCode = 1;
}
