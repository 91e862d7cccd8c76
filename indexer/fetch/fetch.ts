import { numberToHex } from "viem";
import {
  type Blocks,
  type Header,
  headerOf,
  type Log,
  WrongAnswerError,
} from "../../api/platform/chain/log-answers.ts";
import { openProvider, type Provider } from "../../api/platform/chain/provider.ts";
import { type Coverage, type FetchedFile, gapIn, inOrder, shortHash, whyNotOneChain } from "../history/coverage.ts";
import { BLOCK_SECONDS, CHAIN_ID, DAY_SECONDS, LastingError, WINDOW_BLOCKS } from "../ledger.ts";
import type { FetchSettings } from "../settings.ts";
import { fetchedFiles, openFolder, writeFetched } from "./files.ts";
import { lineOf, type Reading, readPayments, startWidth } from "./payments.ts";

const readHeader = (provider: Provider, block: number): Promise<Header> =>
  provider.ask("eth_getBlockByNumber", [numberToHex(block), false], (answer) => {
    const header = headerOf(answer);
    if (header.block !== block) throw new WrongAnswerError(`asked for block ${block}, got ${header.block}`);
    return header;
  });

/** Returns the last block of the UTC day of `first`, or `end` if that is earlier. */
async function lastOfDay(provider: Provider, first: Header, end: Header): Promise<Header> {
  const midnight = (Math.floor(first.time / DAY_SECONDS) + 1) * DAY_SECONDS;
  if (end.time < midnight) return end;
  let [low, high] = [first, end];
  while (high.block - low.block > 1) {
    // The end of the day if blocks are regular, else the middle, for a binary search.
    const regular = low.block + Math.ceil((midnight - low.time) / BLOCK_SECONDS) - 1;
    const guess = regular < high.block ? regular : (low.block + high.block) >> 1;
    const found = await readHeader(provider, Math.max(low.block + 1, guess));
    if (found.time < midnight) low = found;
    else high = found;
  }
  return low;
}

/** A block is read at least this often, even if its time is known. */
const READ_EVERY = 2_000;

/** Returns the times of transfers, and checks that they are on the same chain as these first and last blocks. */
function openClock(provider: Provider, first: Header, last: Header) {
  const isRegular = last.time - first.time === BLOCK_SECONDS * (last.block - first.block);
  const known = new Map([first, last].map((header) => [header.block, header]));
  let read = first.block;
  /** @throws LastingError if a block has two hashes */
  return async (transfers: readonly Log[]): Promise<readonly number[]> => {
    const blocks = [...new Set(transfers.map(({ block }) => block))];
    const newest = blocks.at(-1) ?? read;
    const due = !isRegular ? blocks : newest - read >= READ_EVERY ? [newest] : [];
    const unknown = due.filter((block) => !known.has(block));
    await Promise.all(unknown.map(async (block) => known.set(block, await readHeader(provider, block))));
    read = due.at(-1) ?? read;
    return transfers.map(({ block, blockHash }) => {
      const header = known.get(block);
      if (header !== undefined && header.hash !== blockHash)
        throw new LastingError(`Block ${block} is final, but has two hashes`);
      return header?.time ?? first.time + BLOCK_SECONDS * (block - first.block);
    });
  };
}

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
