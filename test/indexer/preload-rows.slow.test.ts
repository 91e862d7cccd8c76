import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { folderForFile, forFile } from "../support/for-file.ts";
import { SERVICE } from "../support/indexer/generated-chain.ts";
import { freshDatabase } from "../support/service/database.ts";
import { createDice } from "./history.ts";
import { load } from "./preloaded.ts";
import { blockOf, type Fact, placeOf } from "./recount.ts";
import { readTables, recountTables } from "./score-recount.ts";

// Few wallets over many days, so that sums tie, pairs meet again, funders overtake each other, and days touch the
// window's edges.

const DAY_SECONDS = 86_400;
const DAY_0 = 20_000;
const wallet = (n: number) => n.toString(16).padStart(40, "0");
const WALLETS = Array.from({ length: 14 }, (_, n) => wallet(0xabc00 + 7 * n));
/** More payees than the index stores individually, paid by the first wallet. */
const CROWD = Array.from({ length: 120 }, (_, n) => wallet(0xcede00 + n));
const NOT_COUNTED = [SERVICE.slice(2), wallet(0)];

const folder = await folderForFile("trust-preload-rows-");
const database = await freshDatabase();
const pool = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 1 }));
// The schema that the rows are read from.
await pool.query("drop schema live cascade");

/** Transfers in the chain's order, a few per block, with blocks at both edges of some days. */
function play(seed: number): readonly Fact[] {
  const { below, pick } = createDice(seed);
  const facts: Fact[] = [];
  const add = (day: number, second: number, [from, to]: readonly [string, string]) => {
    const value = pick([1n, 0n, 999n, 1_000n, 25_000n, 49_999n, 50_000n, 50_000n, 2n ** 52n, 2n ** 62n]);
    const transaction = `0x${facts.length.toString(16).padStart(64, "0")}` as const;
    const timestampMs = ((DAY_0 + day) * DAY_SECONDS + second) * 1000;
    facts.push({ from, to, value, authorized: below(2) === 0, timestampMs, transaction, place: facts.length });
  };
  const anybody = () => pick([...WALLETS, ...WALLETS, ...NOT_COUNTED]);
  for (const payee of CROWD) for (let n = 0; n < 8; n += 1) add(0, 5, [WALLETS[0] as string, payee]);
  // More payers than the index stores individually.
  for (const payer of CROWD.slice(-24)) for (let n = 0; n < 8; n += 1) add(0, 5, [payer, WALLETS[1] as string]);
  // An age of the window's width has no effect, like no earlier transfer.
  for (const [n, age] of [89, 90, 91].entries())
    for (const day of [0, age]) add(day, 6, [CROWD[n] as string, CROWD[n + 3] as string]);
  for (let day = 1; day < 150; day += 1 + below(4))
    for (const second of pick([[0], [DAY_SECONDS - 1], [0, DAY_SECONDS - 1]]))
      for (let n = below(6); n >= 0; n -= 1) add(day, second, [anybody(), anybody()]);
  const sorted = facts.toSorted((a, b) => a.timestampMs - b.timestampMs);
  // One block per timestamp.
  const times = [...new Set(sorted.map(({ timestampMs }) => timestampMs))];
  return sorted.map((fact, logIndex) => ({
    ...fact,
    place: placeOf({ blockNumber: BigInt(times.indexOf(fact.timestampMs)), logIndex }),
  }));
}

function csvOf(facts: readonly Fact[]): string {
  const lines = facts.map(({ from, to, value, authorized, timestampMs, transaction, place }) =>
    [
      blockOf(place),
      timestampMs / 1000,
      transaction,
      place - placeOf({ blockNumber: BigInt(blockOf(place)), logIndex: 0 }),
      `0x${from}`,
      `0x${to}`,
      value,
      authorized,
    ].join(),
  );
  return ["block,time,transaction,log_index,from,to,value,authorized", ...lines, ""].join("\n");
}

test.each([
  ["full", 1],
  ["full", 2],
  ["selective", 3],
] as const)("A history's rows equal a recount by definition, in %s scope (%i)", async (scope, seed) => {
  const facts = play(seed);
  const file = join(folder, `${seed}.csv`);
  writeFileSync(file, csvOf(facts));
  await load(database.ownerUrl, file, { INDEX_SCOPE: scope, START_BLOCK: "", INDEX_HISTORY: "live" });
  const counted = facts.filter(
    ({ from, to, value }) => value > 0n && from !== to && ![from, to].some((party) => NOT_COUNTED.includes(party)),
  );
  const expected = recountTables(counted, scope);
  expect(expected.payee_slot).toContainEqual(expect.objectContaining({ slot: 0, ordinal: 64 }));
  if (scope === "selective")
    expect(expected.payer_slot).toContainEqual(expect.objectContaining({ slot: 0, ordinal: 16 }));
  expect(await readTables(pool)).toEqual(expected);
});
