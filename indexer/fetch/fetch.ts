import { MAIN_NETWORK, NETWORKS } from "../../api/platform/networks.ts";
import { type Coverage, type FetchedFile, gapIn, inOrder, shortHash, whyNotOneChain } from "../history/coverage.ts";
import { fetchedFiles, lockFolder, writeFetched } from "./files.ts";
import { BLOCK_SECONDS, type Header, lastOfDay, openClock, readFinal, readHeader } from "./headers.ts";
import type { Blocks } from "./log-answers.ts";
import { type Reading, startWidth } from "./logs.ts";
import { lineOf, readAll, readPayments } from "./payments.ts";
import { FetchError, openProvider, type Provider, type Traffic } from "./provider.ts";
import type { FetchSettings } from "./settings.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
const DAYS = 90;
const WINDOW_BLOCKS = (DAYS * 86_400) / BLOCK_SECONDS;
/** Base's blocks are final within half an hour. */
const OLD_SECONDS = 3_600;

export interface FetchPlan {
  readonly settings: FetchSettings;
  readonly folder: string;
  readonly tell: (line: string) => void;
}

export interface Fetched {
  readonly files: readonly FetchedFile[];
  readonly traffic: Traffic;
}

/**
 * Fetches USDC's transfers, from the start block to the newest final block, into a file for each UTC day. Files of earlier
 * runs stay.
 * @throws FetchError if a setting or a file in the folder is wrong, or the nodes failed too often.
 */
export async function fetchTransfers({ settings, folder, tell }: FetchPlan): Promise<Fetched> {
  const provider = openProvider(settings.urls, settings.perSecond, { tell });
  await expectChain(provider);
  const release = await lockFolder(folder);
  try {
    const end = await readFinal(provider);
    tellIfOld(end, tell);
    let files = fetchedFiles(folder);
    const scope = settings.scope ?? files[0]?.scope ?? "selective";
    expectJoined(files, scope);
    const first = settings.startBlock ?? files[0]?.firstBlock ?? Math.max(0, end.block - WINDOW_BLOCKS);
    const run = { folder, end, scope, reading: { provider, width: startWidth(), known: end.block } };
    for (let gap = gapIn(files, first, end.block); gap !== null; gap = gapIn(files, first, end.block)) {
      const file = await fetchDay(run, gap);
      tell(`${file.file}: ${provider.traffic().requests} requests so far`);
      files = inOrder([...files, file]);
      expectJoined(files, scope);
    }
    return { files, traffic: provider.traffic() };
  } finally {
    release();
  }
}

function tellIfOld({ block, time }: Header, tell: FetchPlan["tell"]): void {
  if (Date.now() / 1_000 - time < OLD_SECONDS) return;
  const at = new Date(time * 1_000).toISOString();
  tell(
    `The newest block that is final on every node is ${block}, of ${at}: over an hour ago. If Base has not halted, a node is behind: leave it out of FETCH_RPC_URLS`,
  );
}

async function expectChain(provider: Provider): Promise<void> {
  for (const id of await provider.askAll("eth_chainId", [], Number))
    if (id !== CHAIN_ID)
      throw new FetchError(`FETCH_RPC_URLS is wrong: expected nodes of chain ${CHAIN_ID}, got chain ${id}`);
}

/** @throws FetchError if these files, in order, cannot be of one chain and scope. */
function expectJoined(files: readonly FetchedFile[], scope: Coverage["scope"]): void {
  const wrong = whyNotOneChain(files);
  if (wrong !== null) throw new FetchError(wrong);
  const other = files.find((file) => file.scope !== scope);
  if (other !== undefined)
    throw new FetchError(`${other.file} is of scope ${other.scope}, but INDEX_SCOPE is ${scope}: use another folder`);
}

interface Run {
  readonly folder: string;
  readonly end: Header;
  readonly scope: Coverage["scope"];
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
