import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../../api/kernel/wallet.ts";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { generateChain, walletAt, walletCount } from "../index/generated-chain.ts";
import { INDEXER_SETTINGS, runIndexer } from "../index/indexer.ts";
import { writeCsv } from "../index/transfers-csv.ts";
import { startProgram, stopProgram } from "../programs.ts";
import { openReadings, type Readings } from "./readings.ts";

const PER_BLOCK = 100;
const HISTORY = "history";
/** Ranks below this are the wallets that everyone pays. */
const FIRST_SMALL = 200;

/** An index with this many transfers, in its own database. */
export interface Loaded {
  readonly transfers: number;
  readonly readings: Readings;
  /** The time of the head. */
  readonly now: Date;
  readonly largest: Address;
  /** A wallet with few transfers; each number gives a different one. */
  readonly small: (n: number) => Address;
}

export interface LoadPlan {
  readonly ownerUrl: string;
  readonly apiUrl: string;
  readonly transfers: number;
  readonly folder: string;
}

/**
 * Makes a file of transfers, a history from the file and an index from the history, with the programs an operator would
 * use.
 */
export async function loadIndex({ ownerUrl, apiUrl, transfers, folder }: LoadPlan): Promise<Loaded> {
  const endsAt = Math.floor(Date.now() / 1000);
  const plan = { transfers, perBlock: PER_BLOCK, endsAt };
  const chain = { PLAN: JSON.stringify(plan), PORT: "0" };
  const node = await startProgram("bench/index/rpc-server.ts", chain);
  const [, rpcUrl = ""] = node.lines.at(-1)?.split(" ") ?? [];
  const env = { ...INDEXER_SETTINGS, DATABASE_URL: ownerUrl, BASE_RPC_URL: rpcUrl, INDEX_HISTORY: HISTORY };
  try {
    const file = join(folder, `${transfers}.csv`);
    await writeCsv(generateChain(plan), file);
    const started = performance.now();
    const preload = await startProgram("scripts/index-preload.ts", env, { ready: /^history: /, args: [file] });
    const preloaded = (performance.now() - started) / 1000;
    await stopProgram(preload);
    rmSync(file);
    const { seconds } = await runIndexer(env);
    console.log(
      `${transfers} transfers: preloaded in ${preloaded.toFixed(0)} s, taken over in ${seconds.toFixed(0)} s`,
    );
    await withClient(ownerUrl, async (db) => {
      await db.query(`drop schema ${HISTORY} cascade`);
      await db.query("vacuum analyze");
    });
  } finally {
    await stopProgram(node);
  }
  const wallets = walletCount(transfers) - FIRST_SMALL;
  return {
    transfers,
    readings: openReadings(apiUrl),
    now: new Date(endsAt * 1000),
    largest: walletAt(0),
    small: (n) => walletAt(FIRST_SMALL + ((n * 13) % wallets)),
  };
}
