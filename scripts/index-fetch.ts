import { ProviderError, TooMuchError } from "../api/platform/chain/provider.ts";
import { fetchTransfers } from "../indexer/fetch/fetch.ts";
import { LastingError } from "../indexer/ledger.ts";
import { parseFetchSettings } from "../indexer/settings.ts";

const USAGE = `Usage: npm run index:fetch -- <folder>

Fetches USDC's authorized transfers from nodes of Base into the folder, one file per UTC day, up to the newest block that is
final on all nodes. Run the command again to continue. Configured by FETCH_RPC_URLS (or BASE_RPC_URL), FETCH_PER_SECOND, START_BLOCK.`;

const [folder, ...more] = process.argv.slice(2);
const settings = parseFetchSettings(process.env);
try {
  if (folder === undefined || more.length > 0) throw new LastingError(USAGE);
  if ("problem" in settings) throw new LastingError(settings.problem);
  const { files, requests } = await fetchTransfers(settings, folder, (line) => console.log(line));
  const [first, last] = [files[0]?.firstBlock, files.at(-1)?.lastBlock];
  console.log(`${folder}: ${files.length} files, blocks ${first} to ${last}, ${requests} requests`);
} catch (error) {
  const isOfNodes = error instanceof ProviderError || error instanceof TooMuchError;
  if (error instanceof LastingError) console.error(error.message);
  else console.error(isOfNodes ? `${error.message}. Run the command again to continue` : error);
  process.exitCode = 1;
}
