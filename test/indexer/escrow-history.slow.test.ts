import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import type { Address } from "viem";
import { expect, test, vi } from "vitest";
import { createScoreIndex } from "../../api/score/index-store.ts";
import type { PayeeFact } from "../../packages/verifier/src/score/facts.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { deployEscrow, FEE_RECIPIENT } from "../support/escrow/contract.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createEscrowActor, planBlocks, STRANGER } from "./escrow-actor.ts";
import { ESCROW_VIEWS, fundPayers, readSales, transfer } from "./escrow-record.ts";
import { load } from "./preloaded.ts";
import { type Fact, readFacts } from "./recount.ts";
import { readTables, recountReading, recountTables } from "./score-recount.ts";

// One chain with an index in each scope, on a preloaded history. The history's file has only transfers, so each index
// adds the holds within the history's blocks afterwards.

vi.setConfig({ testTimeout: 90_000 });
const BLOCK = 10_000;

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const actor = await createEscrowActor(chain, escrow);
const first = escrow.block + 1;
await fundPayers(chain);
await actor.play(planBlocks(12, 40));
await fundPayers(chain);
const lastOfFile = Number(await chain.client.getBlockNumber());
const isInFile = ({ place }: Fact) => place >= first * BLOCK && place < (lastOfFile + 1) * BLOCK;
const stillHeld = await actor.mineHold(1, "0x00000000000000000000000000000000000bee03", 60_000n);
await actor.play(planBlocks(4, 41));
await actor.mine(() => actor.release(stillHeld));
// The indexer waits until the file's last block is final.
await chain.client.mine({ blocks: 32 });

const own = [FEE_RECIPIENT, escrow.address];
const file = join(await folderForFile("escrow-history-"), "transfers.csv");
await writeFile(file, csvOf((await readFacts(chain, own)).filter(isInFile)));
const settings = {
  ...{ PAY_TO_ADDRESS: FEE_RECIPIENT, ESCROW_ADDRESSES: escrow.address, START_BLOCK: String(first) },
  INDEX_HISTORY: "history",
};

async function indexIn(scope: "full" | "selective"): Promise<pg.Pool> {
  const { indexerUrl } = await freshDatabase();
  const env = { ...settings, INDEX_SCOPE: scope };
  await load(indexerUrl, file, env);
  const launched = await forFile(launchIndexer({ DATABASE_URL: indexerUrl, BASE_RPC_URL: chain.rpcUrl, ...env }));
  await launched.untilLogged("index ready");
  return forFile(new pg.Pool({ connectionString: indexerUrl, max: 2 }));
}

const reader = await indexIn("full");

function csvOf(facts: readonly Fact[]): string {
  const lines = facts.map(({ place, timestampMs, transaction, from, to, value, authorized }) => {
    const [block, log, time] = [Math.floor(place / BLOCK), place % BLOCK, timestampMs / 1000];
    return [block, time, transaction, log, `0x${from}`, `0x${to}`, value, authorized].join();
  });
  return ["block,time,transaction,log_index,from,to,value,authorized", ...lines, ""].join("\n");
}

async function caughtUp(of = reader): Promise<void> {
  const head = Number(await chain.client.getBlockNumber());
  const position = async () => (await of.query("select block::int from live.position")).rows[0]?.block;
  expect(await waitUntil(async () => (await position()) === head, 45_000)).toBe(true);
}

const SUMS = ["count", "atomic", "unpaid_atomic", "first_at", "last_at", "last_transaction", "funder"];

/** Rows without the columns that depend on the order of events. */
const without = (rows: readonly object[] = [], ...names: readonly string[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name))));

test("Late holds count as payments in all sums, but not as meetings on their day", async () => {
  await caughtUp();
  const facts = await readSales(chain, { escrows: [escrow.address], from: first });
  expect(facts.filter((fact) => fact.kind === "hold" && isInFile(fact)).length).toBeGreaterThan(4);
  const [found, expected] = [await readTables(reader), recountTables(facts, "full")];
  expect(without(found.paid, "funder")).toEqual(without(expected.paid, "funder"));
  expect(without(found.wallet_day, "touched", "ages")).toEqual(without(expected.wallet_day, "touched", "ages"));
  const meetings = (rows: readonly object[] = []) =>
    without(rows, "paid", "qualifying", "qualifying_atomic", "last_at").filter((row) => row.touched !== 0);
  const others = facts.filter((fact) => fact.kind !== "hold" || !isInFile(fact));
  expect(meetings(found.wallet_day)).toEqual(meetings(recountTables(others, "full").wallet_day));
  expect(meetings(found.wallet_day)).not.toEqual(meetings(expected.wallet_day));
  const sums = (rows: readonly object[] = []) =>
    without(rows, "last_day").filter((row) => row.up_atomic !== "0" || row.down_atomic !== "0");
  expect(sums(found.pair)).toEqual(sums(expected.pair));
  const circle = ["payer_funders", "unfunded_payers"];
  expect(without(found.wallet, ...circle)).toEqual(without(expected.wallet, ...circle));
});

test("In selective scope, meetings and sums come from payments alone", async () => {
  const ofPayments = await indexIn("selective");
  await caughtUp(ofPayments);
  const facts = await readSales(chain, { escrows: [escrow.address], from: first });
  const [found, expected] = [await readTables(ofPayments), recountTables(facts, "selective")];
  expect(found.pair).toEqual([]);
  expect(without(found.paid, "met_day")).toEqual(without(expected.paid, "met_day"));
  const others = recountTables(
    facts.filter((fact) => fact.kind !== "hold" || !isInFile(fact)),
    "selective",
  );
  const metOn = (rows: readonly object[] = []) =>
    rows.flatMap((row) => ("met_day" in row && row.met_day !== null ? [without([row], ...SUMS)[0]] : []));
  expect(metOn(found.paid)).toEqual(metOn(others.paid));
  const touched = (rows: readonly object[] = []) =>
    without(rows, "paid", "qualifying", "qualifying_atomic", "last_at").filter((row) => row.touched !== 0);
  expect(touched(found.wallet_day)).toEqual(touched(others.wallet_day));

  const wallets = [...new Set(facts.flatMap(({ from, to }) => [`0x${from}`, `0x${to}`] as const))];
  const scored = createScoreIndex(ofPayments, { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY });
  const asOf = new Date(Math.max(...facts.map(({ timestampMs }) => timestampMs)));
  const readings = await scored.read(wallets, asOf);
  const sums = wallets.map((wallet) => recountReading(facts, wallet, { asOf, scope: "selective" }).payees);
  expect(sums.flat().filter(({ returned }) => returned !== "0").length).toBeGreaterThan(1);
  const byPayee = (payees: readonly PayeeFact[]) => payees.toSorted((a, b) => (a.payee < b.payee ? -1 : 1));
  expect(readings?.map(({ chain: { payees } }) => byPayee(payees))).toEqual(sums);
});

/** The index's record of the merchant after it has read all blocks. */
async function recordOf(merchant: Address): Promise<object | undefined> {
  await caughtUp();
  const scored = createScoreIndex(reader, ESCROW_VIEWS);
  return (await scored.read([merchant.toLowerCase() as Address], new Date(0)))?.[0]?.chain.escrow;
}

test("A buyer counts only with a funder other than the merchant and, for a release, other than the merchant's funder", async () => {
  const merchant: Address = "0x00000000000000000000000000000000000bee99";
  const [sold, dust] = [50_000n, 49_999n];
  // Account 4 funds both payer 1 and the merchant, and account 6 funds payer 2.
  await transfer(chain, { from: devAccount(4).address, to: merchant, value: 5_000_000n });
  await actor.mineSale("release", 1, merchant, sold);
  await actor.mineSale("release", 2, merchant, dust);
  await actor.mineSale("refund", 2, merchant, dust);
  const lapsed = await actor.mineHold(2, merchant, sold);
  await chain.increaseTime(1_800);
  await actor.mine(() => actor.refund(lapsed, STRANGER));
  expect(await recordOf(merchant)).toMatchObject({ buyers: 0, release_days: 0, refunded_buyers: 0, refund_days: 0 });
  await actor.mineSale("refund", 1, merchant, sold);
  await actor.mineSale("release", 2, merchant, sold);
  expect(await recordOf(merchant)).toMatchObject({ buyers: 1, release_days: 1, refunded_buyers: 1, refund_days: 1 });

  // Account 0 is a merchant and a payer, and has funded payer 3.
  const funder = devAccount(0).address;
  const before = await recordOf(funder);
  for (const payer of [0, 3]) {
    await actor.mineSale("release", payer, funder, sold);
    await actor.mineSale("refund", payer, funder, sold);
  }
  expect(await recordOf(funder)).toEqual(before);
});
