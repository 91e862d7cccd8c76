import { type Blocks, type Header, headerOf } from "../../api/platform/chain/log-answers.ts";
import { openProvider } from "../../api/platform/chain/provider.ts";
import { type Coverage, type FetchedFile, gapIn, inOrder, shortHash, whyNotOneChain } from "../history/coverage.ts";
import { CHAIN_ID, LastingError, WINDOW_BLOCKS } from "../ledger.ts";
import type { FetchSettings } from "../settings.ts";
import { fetchedFiles, openFolder, writeFetched } from "./files.ts";
import { lastOfDay, openClock, readHeader } from "./headers.ts";
import { type Reading, startWidth } from "./logs.ts";
import { lineOf, readPayments } from "./payments.ts";

/**
 * Fetches USDC's authorized transfers, from the start block to the newest block that is final on every node, into one file
 * per UTC day. Files of earlier runs stay.
 * @throws LastingError if a setting or a file in the folder is wrong, ProviderError if the nodes failed too often
 */
export async function fetchTransfers(settings: FetchSettings, folder: string, tell: (line: string) => void) {
  const provider = openProvider(settings.urls, settings.perSecond, tell);
  const other = (await provider.askAll("eth_chainId", [], Number)).find((id) => id !== CHAIN_ID);
  if (other !== undefined)
    throw new LastingError(`FETCH_RPC_URLS is wrong: expected nodes of chain ${CHAIN_ID}, got chain ${other}`);
  openFolder(folder);
  const finals = await provider.askAll("eth_getBlockByNumber", ["finalized", false], headerOf);
  const end = finals.toSorted((a, b) => a.block - b.block)[0] as Header;
  let files = fetchedFiles(folder);
  expectOneChain(files);
  const first = settings.startBlock ?? files[0]?.firstBlock ?? Math.max(0, end.block - WINDOW_BLOCKS);
  const reading = { provider, width: startWidth(), known: end.block };
  for (let gap = gapIn(files, first, end.block); gap !== null; gap = gapIn(files, first, end.block)) {
    const file = await fetchDay({ folder, reading, end }, gap);
    tell(`${file.file}: ${provider.requests()} requests in total`);
    files = inOrder([...files, file]);
    expectOneChain(files);
  }
  return { files, requests: provider.requests() };
}

function expectOneChain(files: readonly FetchedFile[]): void {
  const wrong = whyNotOneChain(files);
  if (wrong !== null) throw new LastingError(wrong);
}

type Run = Readonly<{ folder: string; reading: Reading; end: Header }>;

/** Fetches the first UTC day of these blocks. */
async function fetchDay({ folder, reading, end }: Run, gap: Blocks): Promise<FetchedFile> {
  const { provider } = reading;
  const first = await readHeader(provider, gap.first);
  const last = await lastOfDay(provider, first, gap.last === end.block ? end : await readHeader(provider, gap.last));
  const blocks = { first: first.block, last: last.block };
  const timesOf = openClock(provider, first, last);
  const lines = async function* () {
    for await (const transfers of readPayments(reading, blocks)) {
      const times = await timesOf(transfers);
      yield transfers.map((transfer, index) => lineOf(transfer, times[index] ?? 0)).join("");
    }
    const again = await readHeader(provider, last.block);
    if (again.hash !== last.hash) throw new LastingError(`Block ${last.block} is final, but has two hashes`);
  };
  const coverage: Coverage = {
    day: new Date(first.time * 1_000).toISOString().slice(0, 10),
    ...{ firstBlock: first.block, lastBlock: last.block },
    ...{ parentHash: shortHash(first.parentHash), lastHash: shortHash(last.hash) },
  };
  return await writeFetched(folder, coverage, lines());
}
