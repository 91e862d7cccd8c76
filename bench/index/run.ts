// What the index costs, each part beside a peer where there is one.
//
//   npm run bench:index -- [sync] [transfers, default 1000000]      Ponder beside a bare viem getLogs + COPY loader
//   npm run bench:index -- preload [transfers, default 1000000]     DuckDB beside PostgreSQL's SQL, and their rows compared
//   npm run bench:index -- size [transfers, default 1000000]        bytes a payment, tables and keys
//   npm run bench:index -- fetch [transfers, default 1000000]       payments from a node to Parquet, and a recount
//   npm run bench:index -- takeover [transfers, default 1000000]    how long an index takes to have a history's rows
//   npm run bench:index -- change [transfers, default 1000000]      a start after changes that concern no row
//   npm run bench:index -- lookups [transfers, default 1000000]     what the score of a wallet makes the service look up
//   npm run bench:index -- prune                                    the size of Ponder's copy, and a recount after a bad day
//   npm run bench:index -- live                                     what a block costs, and how many there may be
//   npm run bench:index -- catchup [minutes, default 60]            how long a stop takes to be made up for
import { runChange } from "./change/change.ts";
import { runFetch } from "./fetch.ts";
import { runCatchup, runLive } from "./live/live.ts";
import { runLookups } from "./lookups.ts";
import { runPreload } from "./preload/preload.ts";
import { runPrune } from "./prune/prune.ts";
import { runSize } from "./size.ts";
import { PER_BLOCK } from "./stage.ts";
import { runSync } from "./sync/sync.ts";
import { runTakeover } from "./takeover.ts";

interface Part {
  readonly run: (size: number) => Promise<boolean>;
  /** What its size is counted in, the least, and the usual; absent if it has one size. */
  readonly size?: readonly [unit: string, least: number, usual: number];
}

const TRANSFERS = ["transfers", PER_BLOCK, 1_000_000] as const;
const PARTS: Readonly<Record<string, Part>> = {
  sync: { run: runSync, size: TRANSFERS },
  preload: { run: runPreload, size: TRANSFERS },
  size: { run: runSize, size: TRANSFERS },
  fetch: { run: runFetch, size: TRANSFERS },
  takeover: { run: runTakeover, size: TRANSFERS },
  change: { run: runChange, size: TRANSFERS },
  lookups: { run: runLookups, size: TRANSFERS },
  prune: { run: runPrune },
  live: { run: runLive },
  catchup: { run: runCatchup, size: ["minutes", 1, 60] },
};

function refuse(): never {
  const parts = Object.entries(PARTS).map(([name, { size }]) =>
    size === undefined ? name : `${name} [${size[0]}, at least ${size[1]}]`,
  );
  console.error(`Usage: npm run bench:index -- ${parts.join(" | ")}`);
  process.exit(1);
}

const words = process.argv.slice(2);
const name = words[0] !== undefined && words[0] in PARTS ? words.shift() : "sync";
const { run, size: [, least, usual] = ["", 0, 0] } = PARTS[name ?? "sync"] ?? refuse();
const size = Number(words[0] ?? usual);
if (words.length > (usual === 0 ? 0 : 1) || !Number.isSafeInteger(size) || size < least) refuse();
process.exitCode = (await run(size)) ? 0 : 1;
