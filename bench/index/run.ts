// The cost and speed of the index, with the chain, PostgreSQL, and the indexer in separate processes.
//
//   npm run bench:index -- [transfers, default 500000] [minutes of the stop, default 20]
import { report } from "../table.ts";
import { bounded } from "./bounded.ts";
import { follow, restartSelective } from "./follow.ts";
import { preload } from "./preload.ts";

const [transfers = 500_000, minutes = 20] = process.argv.slice(2).map(Number);
if (!(Number.isSafeInteger(transfers) && transfers >= 10_000 && minutes >= 1)) {
  console.error("Usage: npm run bench:index -- [transfers, at least 10000] [minutes, at least 1]");
  process.exit(1);
}
const figures = [
  ...(await follow(transfers, minutes)),
  ...(await restartSelective()),
  ...(await preload(transfers)),
  ...(await bounded()),
];
process.exitCode = report(`the index, ${transfers.toLocaleString("en-US")} transfers`, figures) ? 0 : 1;
