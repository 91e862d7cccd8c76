// The transparency log in the real service: what it costs the sales beside it, how fast it takes up what waits, and how long a
// proof takes in a tree of 1,000,000 entries. Sales are whole payments over HTTP, with PostgreSQL, a chain and Circle's USDC.
//
//   npm run bench:log                 all of it
//   npm run bench:log -- proofs       proofs alone
import { judgeAll } from "../payments/goals.ts";
import { warmUp } from "../payments/loads.ts";
import { AT_ONCE, inWorld } from "../payments/world.ts";
import { integrate } from "./integration.ts";
import { LEAST, loss } from "./loss.ts";
import { proofs } from "./proofs.ts";

const PAYERS = 16;

const proofGoal = (value: number) => ({ what: "p99 of a proof at 1,000,000 entries, ms", value, most: 5 });
const onlyProofs = process.argv[2] === "proofs";
const isReached = await inWorld({ mining: AT_ONCE, payers: PAYERS }, async (world) => {
  if (onlyProofs) return judgeAll([proofGoal(await proofs(world.database))]);
  await warmUp(world);
  const sales = await loss(world);
  const perSecond = await integrate(world);
  const p99 = await proofs(world.database);
  return judgeAll([
    { what: "sales with the log over sales without it", value: sales, least: LEAST },
    { what: "entries integrated a second beside sales", value: perSecond, least: 1_000 },
    proofGoal(p99),
  ]);
});
process.exitCode = isReached ? 0 : 1;
