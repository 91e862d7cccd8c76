import type pg from "pg";
import { measure } from "../payments/paying.ts";
import type { World } from "../payments/world.ts";
import { type Figure, median } from "../table.ts";
import { copies, treeSize, whenTaken } from "./entries.ts";

const WAITING = 12_000;
/** The number of entries that the integrator adds per statement. */
const CHUNK = 50;

/** Compares how fast a queue drains during sales with a bare insert of the same rows during sales. */
export async function integrate(world: World, owner: pg.Client): Promise<readonly Figure[]> {
  await whenTaken(owner);
  await copies(owner, WAITING);
  const before = await treeSize(owner);
  const ours = await duringSales(world, async () => {
    await whenTaken(owner);
    return (await treeSize(owner)) - before;
  });
  const peer = await duringSales(world, () => insertBare(owner, before));
  return [
    { name: `entries/s of ${WAITING.toLocaleString("en-US")} that wait`, ours: ours.perSecond, atLeast: 1_000 },
    { name: "entries/s, and a bare insert", ours: ours.perSecond, peer: peer.perSecond },
    { name: "sales/s meanwhile", ours: ours.sales, peer: peer.sales },
  ];
}

/** Runs the work while payers pay, until it is done. */
export async function duringSales({ sides: { ours }, payers }: World, work: () => Promise<number>) {
  let isDone = false;
  const selling = (async () => {
    const rates: number[] = [];
    while (!isDone) rates.push((await measure(ours, { payers, each: 4 })).perSecond);
    return median(rates);
  })();
  const started = performance.now();
  const done = await work();
  const perSecond = (done * 1_000) / (performance.now() - started);
  isDone = true;
  return { perSecond, sales: await selling };
}

/** Inserts only the rows with their keys, without signing, a tree, or a queue. */
async function insertBare(owner: pg.Client, from: number): Promise<number> {
  await owner.query("CREATE TABLE bare (LIKE log_entry INCLUDING ALL)");
  const { rows } = await owner.query<{ row: string }>(
    "SELECT e::text AS row FROM log_entry e WHERE idx >= $1 ORDER BY idx",
    [from],
  );
  await owner.query("BEGIN");
  for (let at = 0; at < rows.length; at += CHUNK)
    await owner.query("INSERT INTO bare SELECT (r).* FROM unnest($1::log_entry[]) AS r", [
      rows.slice(at, at + CHUNK).map(({ row }) => row),
    ]);
  await owner.query("COMMIT");
  return rows.length;
}
