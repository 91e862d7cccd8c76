// Compares one of our paid routes with a bare `@x402/hono` server that has the stock middleware and an empty handler, on the
// same chain and machine, with the same payers, in turns. Ours settles through its own relayer, the peer through the stock
// facilitator, as each would in production. Payments are signed beforehand, so only the servers' time is measured. Then compares
// escrowed sales with `exact` sales.
//
//   npm run bench:payments -- [loads] [blocks] [escrow]      default: these three
//   npm run bench:payments -- facilitators                   our relayer and three other facilitators
import { compareFacilitators } from "../facilitators/compare.ts";
import { type Figure, report } from "../table.ts";
import { blocks } from "./blocks.ts";
import { escrow } from "./escrow.ts";
import { loads } from "./loads.ts";

const PARTS: Readonly<Record<string, () => Promise<readonly Figure[]>>> = { loads, blocks, escrow };

const names = process.argv.slice(2);
if (names[0] === "facilitators" && names.length === 1) {
  await compareFacilitators();
  process.exit();
}
if (names.some((name) => PARTS[name] === undefined)) {
  console.error(`Usage: npm run bench:payments -- [${Object.keys(PARTS).join("] [")}], or facilitators`);
  process.exit(1);
}
let isReached = true;
for (const name of names.length === 0 ? Object.keys(PARTS) : names)
  isReached = report(`payments, ${name}, by concurrent payers`, (await PARTS[name]?.()) ?? []) && isReached;
process.exitCode = isReached ? 0 : 1;
