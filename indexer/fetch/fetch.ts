import { type Blocks, type Header, headerOf } from "../../api/platform/chain/log-answers.ts";
import { openProvider } from "../../api/platform/chain/provider.ts";
import { type Coverage, type FetchedFile, gapIn, inOrder, shortHash, whyNotOneChain } from "../history/coverage.ts";
import { CHAIN_ID, type Scope, WINDOW_BLOCKS } from "../ledger.ts";
import { FetchError, fetchedFiles, lockFolder, writeFetched } from "./files.ts";
import { lastOfDay, openClock, readHeader } from "./headers.ts";
import { type Reading, startWidth } from "./logs.ts";
import { lineOf, readAll, readPayments } from "./payments.ts";
import type { FetchSettings } from "./settings.ts";

/** Base's blocks are final within half an hour. */
const OLD_SECONDS = 3_600;

export interface FetchPlan {
  readonly settings: FetchSettings;
  readonly folder: string;
  readonly tell: (line: string) => void;
}

/**
 * Fetches USDC's transfers, from the start block to the newest block that is final on every node, into a file for each UTC
 * day. Files of earlier runs stay.
 * @throws FetchError if a setting or a file in the folder is wrong, ProviderError if the nodes failed too often
 */
export async function fetchTransfers({ settings, folder, tell }: FetchPlan) {
  const provider = openProvider(settings.urls, settings.perSecond, tell);
  const other = (await provider.askAll("eth_chainId", [], Number)).find((id) => id !== CHAIN_ID);
  if (other !== undefined)
    throw new FetchError(`FETCH_RPC_URLS is wrong: expected nodes of chain ${CHAIN_ID}, got chain ${other}`);
  const release = await lockFolder(folder);
  try {
    const finals = await provider.askAll("eth_getBlockByNumber", ["finalized", false], headerOf);
    const end = finals.toSorted((a, b) => a.block - b.block)[0] as Header;
    if (Date.now() / 1_000 - end.time > OLD_SECONDS)
      tell(
        `The newest block that is final on every node is ${end.block}, of ${new Date(end.time * 1_000).toISOString()}: over an hour ago. If Base has not halted, a node is behind: leave it out of FETCH_RPC_URLS`,
      );
    let files = fetchedFiles(folder);
    const scope = settings.scope ?? files[0]?.scope ?? "selective";
    expectJoined(files, scope);
    const first = settings.startBlock ?? files[0]?.firstBlock ?? Math.max(0, end.block - WINDOW_BLOCKS);
    const run = { folder, end, scope, reading: { provider, width: startWidth(), known: end.block } };
    for (let gap = gapIn(files, first, end.block); gap !== null; gap = gapIn(files, first, end.block)) {
      const file = await fetchDay(run, gap);
      tell(`${file.file}: ${provider.requests()} requests so far`);
      files = inOrder([...files, file]);
      expectJoined(files, scope);
    }
    return { files, requests: provider.requests() };
  } finally {
    release();
  }
}

/** @throws FetchError if these files, in order, cannot be of one chain and scope */
function expectJoined(files: readonly FetchedFile[], scope: Scope): void {
  const wrong = whyNotOneChain(files);
  if (wrong !== null) throw new FetchError(wrong);
  const other = files.find((file) => file.scope !== scope);
  if (other !== undefined)
    throw new FetchError(`${other.file} is of scope ${other.scope}, but INDEX_SCOPE is ${scope}: use another folder`);
}

interface Run {
  readonly folder: string;
  readonly end: Header;
  readonly scope: Scope;
  readonly reading: Reading;
}

/** Fetches the first day of these blocks. */
async function fetchDay({ folder, end, scope, reading }: Run, gap: Blocks): Promise<FetchedFile> {
  const { provider } = reading;
  const first = await readHeader(provider, gap.first);
  const last = await lastOfDay(provider, first, gap.last === end.block ? end : await readHeader(provider, gap.last));
  const blocks = { first: first.block, last: last.block };
  const timesOf = openClock(provider, first, last);
  const lines = async function* () {
    for await (const transfers of (scope === "full" ? readAll : readPayments)(reading, blocks)) {
      const times = await timesOf(transfers);
      yield transfers.map((transfer, index) => lineOf(transfer, times[index] ?? 0)).join("");
    }
    const again = await readHeader(provider, last.block);
    if (again.hash !== last.hash) throw new FetchError(`Block ${last.block} is final, but has two hashes`);
  };
  const coverage: Coverage = {
    ...{ day: new Date(first.time * 1_000).toISOString().slice(0, 10), scope },
    ...{ firstBlock: first.block, lastBlock: last.block },
    ...{ parentHash: shortHash(first.parentHash), lastHash: shortHash(last.hash) },
  };
  return await writeFetched(folder, coverage, lines());
}
