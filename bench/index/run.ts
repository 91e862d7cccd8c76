// What the index costs, each part beside a peer where there is one.
//
//   npm run bench:index -- [sync] [transfers, default 1000000]      Ponder beside a bare viem getLogs + COPY loader
//   npm run bench:index -- preload [transfers, default 1000000]     DuckDB beside PostgreSQL's SQL, and their rows compared
import { runPreload } from "./preload/preload.ts";
import { PER_BLOCK } from "./stage.ts";
import { runSync } from "./sync/sync.ts";

const PARTS: Readonly<Record<string, (transfers: number) => Promise<boolean>>> = { sync: runSync, preload: runPreload };

const words = process.argv.slice(2);
const name = words[0] !== undefined && words[0] in PARTS ? words.shift() : "sync";
const part = PARTS[name ?? "sync"];
const transfers = Number(words[0] ?? 1_000_000);
if (part === undefined || words.length > 1 || !Number.isSafeInteger(transfers) || transfers < PER_BLOCK) {
  console.error(`Usage: npm run bench:index -- [${Object.keys(PARTS).join(" | ")}] [transfers, at least ${PER_BLOCK}]`);
  process.exit(1);
}
process.exitCode = (await part(transfers)) ? 0 : 1;
