// The transparency log in the real service: its cost for sales, the speed of integration, and the duration of a proof. Sales
// are full payments over HTTP, with PostgreSQL, a chain, and Circle's USDC.
//
//   npm run bench:log -- [sales] [integration] [proofs] [tessera]      default: the first three
import { randomInt } from "node:crypto";
import type pg from "pg";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { warmUp } from "../payments/loads.ts";
import { AT_ONCE, inWorld, type World } from "../payments/world.ts";
import { type Figure, percentile, report } from "../table.ts";
import { treeSize, whenTaken } from "./entries.ts";
import { integrate } from "./integration.ts";
import { sell } from "./sales.ts";
import { compareWithTessera } from "./tessera.ts";

const PROOFS = 1_000;
const WARM = 100;

/** Compares sequential requests over HTTP for proofs of random entries with requests for the checkpoint in each of them. */
async function prove({ sides }: World, owner: pg.Client): Promise<readonly Figure[]> {
  const { origin } = new URL(sides.ours.url);
  await whenTaken(owner);
  const size = await treeSize(owner);
  const times: Record<"ours" | "peer", number[]> = { ours: [], peer: [] };
  for (let n = -WARM; n < PROOFS; n++) {
    const proof = await timed(`${origin}/log/entry/${randomInt(size)}.tlog-proof`);
    const checkpoint = await timed(`${origin}/log/checkpoint`);
    if (n < 0) continue;
    times.ours.push(proof);
    times.peer.push(checkpoint);
  }
  const figure = (name: string, share: number): Figure => ({
    ...{ name, ours: percentile(times.ours, share), peer: percentile(times.peer, share) },
  });
  const among = `a proof among ${size.toLocaleString("en-US")} entries`;
  return [{ ...figure(`${among}, p50 ms, and the checkpoint`, 0.5), atMost: 2 }, figure(`${among}, p99 ms`, 0.99)];
}

async function timed(url: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(url);
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
  return performance.now() - started;
}

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
