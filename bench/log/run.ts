// The transparency log in the real service: what it costs the sales beside it, how fast it takes up what waits, and how long a
// proof takes in a tree of 1,000,000 entries. Sales are whole payments over HTTP, with PostgreSQL, a chain and Circle's USDC.
//
//   npm run bench:log                 all of it
//   npm run bench:log -- sales        one part of it: sales, integration or proofs
import { type Goal, judgeAll } from "../payments/goals.ts";
import { warmUp } from "../payments/loads.ts";
import { AT_ONCE, inWorld } from "../payments/world.ts";
import { integrate } from "./integration.ts";
import { LEAST, loss } from "./loss.ts";
import { proofs } from "./proofs.ts";

const PAYERS = 16;

const PARTS = ["sales", "integration", "proofs"];
const parts = process.argv.length > 2 ? process.argv.slice(2) : PARTS;
if (!parts.every((part) => PARTS.includes(part))) throw new Error(`expected parts among ${PARTS.join(", ")}`);
const isReached = await inWorld({ mining: AT_ONCE, payers: PAYERS }, async (world) => {
  if (parts.join() !== "proofs") await warmUp(world);
  const goals: Goal[] = [];
  if (parts.includes("sales"))
    goals.push({ what: "sales with the log over sales without it", value: await loss(world), least: LEAST });
  if (parts.includes("integration"))
    goals.push({ what: "entries integrated a second beside sales", value: await integrate(world), least: 1_000 });
  if (parts.includes("proofs"))
    goals.push({ what: "p99 of a proof at 1,000,000 entries, ms", value: await proofs(world.database), most: 5 });
  return judgeAll(goals);
});
process.exitCode = isReached ? 0 : 1;
