// One of our paid routes against a bare `@x402/hono` server with the stock middleware and an empty handler: the same
// chain, machine and payers, in turns. Ours settles through its own relayer, the peer through the stock facilitator, as
// each would be run. Payments are signed beforehand, so only the servers' time is measured. Every part ends by comparing
// the transfers on the chain with the answers.
//
//   npm run bench:payments -- [loads] [blocks] [calls] [gas] [time]      default: all
import { blocks } from "./blocks.ts";
import { calls } from "./calls.ts";
import { gas } from "./gas.ts";
import { loads } from "./loads.ts";
import { time } from "./time.ts";

const PARTS: Readonly<Record<string, () => Promise<boolean>>> = { loads, blocks, calls, gas, time };

const names = process.argv.slice(2);
if (names.some((name) => PARTS[name] === undefined)) {
  console.error(`Usage: npm run bench:payments -- [${Object.keys(PARTS).join("] [")}]`);
  process.exit(1);
}
console.log("medians of rounds in turns; ratios are ours over the peer's of the same round");
let isReached = true;
for (const name of names.length === 0 ? Object.keys(PARTS) : names) {
  const started = performance.now();
  isReached = ((await PARTS[name]?.()) ?? false) && isReached;
  console.log(`${name}: ${Math.round((performance.now() - started) / 1_000)} s\n`);
}
process.exitCode = isReached ? 0 : 1;
