// The transparency log in the real service: its cost for sales, the speed of integration, and the duration of a proof. Sales
// are full payments over HTTP, with PostgreSQL, a chain, and Circle's USDC.
//
//   npm run bench:log -- [sales] [integration] [proofs] [tessera]      default: the first three
import { withClient } from "../../scripts/embedded/postgres.ts";
import { warmUp } from "../payments/loads.ts";
import { AT_ONCE, inWorld, type World } from "../payments/world.ts";
import { type Figure, report } from "../table.ts";
import { integrate } from "./integration.ts";
import { prove } from "./proofs.ts";
import { sell } from "./sales.ts";
import { compareWithTessera } from "./tessera.ts";

const PAYERS = 16;
const PARTS = { sales: sell, integration: integrate, proofs: prove, tessera: compareWithTessera };
const DEFAULT = ["sales", "integration", "proofs"];

const given = process.argv.slice(2);
const named = given.length === 0 ? DEFAULT : given;
if (!named.every((name) => name in PARTS)) {
  console.error(`Usage: npm run bench:log -- [${Object.keys(PARTS).join("] [")}]`);
  process.exit(1);
}

const measureParts = (world: World) =>
  withClient(world.database.ownerUrl, async (owner) => {
    await warmUp(world);
    const figures: Figure[] = [];
    for (const [name, part] of Object.entries(PARTS))
      if (named.includes(name)) figures.push(...(await part(world, owner)));
    return figures;
  });

process.exitCode = report("the log", await inWorld({ mining: AT_ONCE, payers: PAYERS }, measureParts)) ? 0 : 1;
