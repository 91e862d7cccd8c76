import { randomInt } from "node:crypto";
import type pg from "pg";
import type { World } from "../payments/world.ts";
import { type Figure, percentile } from "../table.ts";
import { treeSize, whenTaken } from "./entries.ts";

const PROOFS = 1_000;
const WARM = 100;

/** Compares sequential requests over HTTP for proofs of random entries with requests for the checkpoint in each of them. */
export async function prove({ sides }: World, owner: pg.Client): Promise<readonly Figure[]> {
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
