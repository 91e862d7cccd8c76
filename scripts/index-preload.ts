import { tmpdir } from "node:os";
import pg from "pg";
import { connectChain, readHead, WrongChainError } from "../indexer/chain.ts";
import { messageOf } from "../indexer/history/duck.ts";
import { isFinalOn, UnfitHistoryError } from "../indexer/history/history.ts";
import { loadHistory } from "../indexer/history/load.ts";
import { withOperators } from "../indexer/operators.ts";
import { parseSettings } from "../indexer/settings.ts";

const USAGE = `Usage: npm run index:preload -- <transfers.csv | transfers.csv.gz | transfers.parquet | folder> ...

Builds the rows of the index from files of USDC transfers, in the schema INDEX_HISTORY. Configured like the indexer.
The columns: block, time, transaction, log_index, from, to, value, authorised. docs/index-history.md describes them.`;

async function preload(files: readonly string[]): Promise<string> {
  if (files.length === 0) throw new UnfitHistoryError(USAGE);
  const given = parseSettings(process.env);
  if ("problem" in given) throw new UnfitHistoryError(given.problem);
  const { historySchema: schema, databaseUrl, rpcUrls } = given;
  if (schema === null)
    throw new UnfitHistoryError("INDEX_HISTORY is missing: expected the name of the schema to create, like history");
  const chain = connectChain(...rpcUrls);
  const head = await readHead(chain);
  const db = new pg.Client({ connectionString: databaseUrl, application_name: "index_preload" });
  db.on("error", ({ message }) => stop(`PostgreSQL closed the connection (${message})`));
  await db.connect();
  try {
    const settings = await withOperators(given, chain, db);
    const { transfers, firstBlock, lastBlock, scope } = await loadHistory({
      ...{ db, files, schema, settings, tell: (line) => console.log(line) },
      accept: async (history) => {
        if (await isFinalOn(chain, head, history)) return;
        throw new UnfitHistoryError(`The last block in the files, ${history.lastBlock}, is not final on the node yet`);
      },
    });
    return `${schema}: ${transfers} transfers, blocks ${firstBlock} to ${lastBlock}. Run the indexer with INDEX_HISTORY=${schema} and INDEX_SCOPE=${scope} to use it.`;
  } finally {
    await db.end();
  }
}

/** PostgreSQL takes back what is not committed, and DuckDB's folder is removed at the exit. */
function stop(reason: string): never {
  console.error(`${reason}. Nothing is half made; run this again`);
  process.exit(1);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop(`Ended by ${signal}`));
try {
  console.log(await preload(process.argv.slice(2)));
} catch (error) {
  const isKnown = error instanceof UnfitHistoryError || error instanceof WrongChainError;
  const failure = `The history could not be created: ${messageOf(error)}`;
  const advice = `Its temporary files are in ${tmpdir()}; if that is full, set TMPDIR to a folder on a larger disk`;
  console.error(isKnown ? error.message : `${failure}. ${advice}`);
  process.exitCode = 1;
}
