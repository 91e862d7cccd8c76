import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import { type Coverage, inOrder, whyNotJoined } from "../history/coverage.ts";
import { trackProgress } from "../history/progress.ts";
import { type FetchedFile, openStore, type Store } from "./files.ts";
import { BLOCK_SECONDS, clockOf, type Header, hashesOf, lastOfDay, readFinal, readHeader } from "./headers.ts";
import type { Blocks } from "./log-answers.ts";
import { startWidth, type Width } from "./logs.ts";
import { readAll, readPayments } from "./payments.ts";
import { FetchError, openProvider, type Provider, type Traffic } from "./provider.ts";
import type { FetchSettings } from "./settings.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
const DAYS = 90;
const WINDOW_BLOCKS = (DAYS * 86_400) / BLOCK_SECONDS;

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
 * Fetches USDC's transfers, from the start block to the newest final block, into a file for each UTC day. What earlier
 * runs have fetched stays.
 * @throws FetchError if a setting or a file in the folder is wrong, or the nodes failed too often.
 */
export async function fetchTransfers({ settings, folder, tell }: FetchPlan): Promise<Fetched> {
  const provider = openProvider(settings.urls, settings.perSecond, { tell });
  await expectChain(provider);
  const store = await openStore(folder);
  try {
    const end = await readFinal(provider);
    tellIfOld(end, tell);
    const had = await store.files();
    expectOneChain(had);
    const scope = settings.scope ?? had[0]?.scope ?? "authorised";
    expectScope(had, scope);
    const first = settings.startBlock ?? had[0]?.firstBlock ?? Math.max(0, end.block - WINDOW_BLOCKS);
    const missing = gapsOf(had, { first, last: end.block });
    const run: Run = { provider, store, end, scope, width: startWidth() };
    const progress = trackProgress(tell);
    const blocks = missing.reduce((sum, gap) => sum + gap.last - gap.first + 1, 0);
    let files = had;
    for (const gap of missing)
      for (let next = gap.first; next <= gap.last; ) {
        const file = await fetchDay(run, { ...gap, first: next }, { progress, blocks });
        files = inOrder([...files, file]);
        expectOneChain(files);
        next = file.lastBlock + 1;
      }
    return { files, traffic: provider.traffic() };
  } finally {
    store.close();
  }
}

/** Base's blocks are final within half an hour. */
const OLD_SECONDS = 3_600;

function tellIfOld({ block, time }: Header, tell: FetchPlan["tell"]): void {
  if (Date.now() / 1_000 - time < OLD_SECONDS) return;
  const at = new Date(time * 1_000).toISOString();
  tell(
    `The newest block that is final on every node is ${block}, of ${at}: over an hour ago. If Base has not halted, a node is behind: leave it out of FETCH_RPC_URLS`,
  );
}

interface Run {
  readonly provider: Provider;
  readonly store: Store;
  readonly end: Header;
  readonly scope: Coverage["scope"];
  readonly width: Width;
}

async function expectChain(provider: Provider): Promise<void> {
  for (const id of await provider.askAll("eth_chainId", [], Number))
    if (id !== CHAIN_ID)
      throw new FetchError(`FETCH_RPC_URLS is wrong: expected nodes of chain ${CHAIN_ID}, got chain ${id}`);
}

/** @throws FetchError if files that follow each other do not fit. */
function expectOneChain(files: readonly FetchedFile[]): void {
  for (const [index, file] of files.entries()) {
    const wrong = index === 0 ? null : whyNotJoined(files.slice(index - 1, index + 1));
    if (wrong !== null && file.firstBlock <= (files[index - 1]?.lastBlock ?? 0) + 1) throw new FetchError(wrong);
  }
}

function expectScope(files: readonly FetchedFile[], scope: Coverage["scope"]): void {
  const other = files.find((file) => file.scope !== scope);
  if (other !== undefined)
    throw new FetchError(`${other.file} is of scope ${other.scope}, but INDEX_SCOPE is ${scope}: use another folder`);
}

/** The blocks that no file covers. */
function gapsOf(files: readonly FetchedFile[], { first, last }: Blocks): readonly Blocks[] {
  const gaps: Blocks[] = [];
  let next = first;
  for (const file of files) {
    if (file.firstBlock > next) gaps.push({ first: next, last: Math.min(last, file.firstBlock - 1) });
    next = Math.max(next, file.lastBlock + 1);
  }
  if (next <= last) gaps.push({ first: next, last });
  return gaps.filter((gap) => gap.first <= gap.last);
}

interface Told {
  readonly progress: ReturnType<typeof trackProgress>;
  readonly blocks: number;
}

/** Fetches the first day of these blocks. */
async function fetchDay({ provider, store, end, scope, width }: Run, gap: Blocks, told: Told): Promise<FetchedFile> {
  const first = await readHeader(provider, gap.first);
  const limit = gap.last === end.block ? end : await readHeader(provider, gap.last);
  const last = await lastOfDay(provider, first, limit);
  const blocks = { first: first.block, last: last.block };
  const day = new Date(first.time * 1000).toISOString().slice(0, 10);
  return await told.progress.phase(day, (blocks.last - blocks.first + 1) / told.blocks, async (done) => {
    const coverage: Coverage = {
      ...{ chainId: CHAIN_ID, scope, firstBlock: blocks.first, lastBlock: blocks.last },
      ...{ lastHash: last.hash, parentHash: first.parentHash },
    };
    const reading = { provider, width, known: end.block };
    const batches = scope === "full" ? readAll(reading, blocks) : readPayments(reading, blocks);
    const lines = async function* () {
      const timeOf = clockOf(provider, first, last);
      const expectHashes = hashesOf(provider, [first, last]);
      for await (const { blocks: read, transfers } of batches) {
        await expectHashes(transfers);
        let text = "";
        for (const one of transfers) {
          const time = timeOf(one);
          text += `${one.block},${typeof time === "number" ? time : await time},${one.transaction},${one.logIndex},${one.from},${one.to},${one.value},${one.authorised}\n`;
        }
        if (text !== "") yield text;
        done((read.last - blocks.first + 1) / (blocks.last - blocks.first + 1));
      }
      const again = await readHeader(provider, last.block);
      if (again.hash !== last.hash) throw new FetchError(`Block ${last.block} is final, but has two hashes`);
    };
    return await store.write(day, lines(), coverage);
  });
}
