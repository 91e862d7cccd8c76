import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { deployEscrow, FEE_RECIPIENT } from "../support/escrow/contract.ts";
import { folderForFile } from "../support/folder.ts";
import { forFile } from "../support/for-file.ts";
import { launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { createEscrowActor, MERCHANTS, planBlocks } from "./escrow-actor.ts";
import { fundPayers, readSales } from "./escrow-record.ts";
import { load } from "./preloaded.ts";
import { type Fact, readFacts } from "./recount.ts";
import { readTables, recountTables } from "./score-recount.ts";

// Holds within the blocks of a preloaded history, whose file has transfers only: the index takes them up after it.

const BLOCK = 10_000;

function csvOf(facts: readonly Fact[]): string {
  const lines = facts.map(({ place, timestampMs, transaction, from, to, value, authorised }) =>
    [
      Math.floor(place / BLOCK),
      timestampMs / 1000,
      transaction,
      place % BLOCK,
      `0x${from}`,
      `0x${to}`,
      value,
      authorised,
    ].join(),
  );
  return ["block,time,transaction,log_index,from,to,value,authorised", ...lines, ""].join("\n");
}

/** Rows without what the order of events decides. */
const without = (rows: readonly object[] = [], ...names: readonly string[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name))));

test("late holds count as payments, with all sums, but not as meetings on their day", {
  timeout: 120_000,
}, async () => {
  const chain = await startTestChain();
  const database = await freshDatabase();
  const reader = await forFile(new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
  const escrow = await deployEscrow(chain);
  const actor = await createEscrowActor(chain, escrow);
  const from = escrow.block + 1;
  await fundPayers(chain);
  await actor.play(planBlocks(12, 40));
  await fundPayers(chain);
  const lastOfFile = Number(await chain.client.getBlockNumber());
  const stillHeld = await actor.mineHold(1, MERCHANTS[3] as `0x${string}`, 60_000n);
  await actor.play(planBlocks(30, 41));
  await actor.mine(() => actor.release(stillHeld));

  const own = [FEE_RECIPIENT, escrow.address];
  const transfers = (await readFacts(chain, own)).filter(
    ({ place }) => place >= from * BLOCK && place < (lastOfFile + 1) * BLOCK,
  );
  const file = join(await folderForFile("escrow-preloaded-"), "transfers.csv");
  await writeFile(file, csvOf(transfers));
  const env = {
    ...{ PAY_TO_ADDRESS: FEE_RECIPIENT, ESCROW_ADDRESSES: escrow.address, START_BLOCK: String(from), EXCLUSIVE: "1" },
    INDEX_HISTORY: "history",
  };
  await load(database.ownerUrl, file, env);
  const launched = launchIndexer({ DATABASE_URL: database.ownerUrl, BASE_RPC_URL: chain.rpcUrl, ...env });
  try {
    await launched.saying("index ready");
    const head = Number(await chain.client.getBlockNumber());
    const position = async () => (await reader.query("select block::int from live.position")).rows[0]?.block;
    expect(await waitUntil(async () => (await position()) === head, 45_000)).toBe(true);

    const facts = await readSales(chain, { escrows: [escrow.address], from });
    const late = facts.filter(({ kind, place }) => kind === "hold" && place < (lastOfFile + 1) * BLOCK);
    expect(late.length).toBeGreaterThan(4);
    const [found, expected] = [await readTables(reader), recountTables(facts, "full")];
    expect(without(found.paid, "funder")).toEqual(without(expected.paid, "funder"));
    expect(without(found.wallet_day, "touched", "ages")).toEqual(without(expected.wallet_day, "touched", "ages"));
    const sums = (rows: readonly object[] = []) =>
      without(rows, "last_day").filter((row) => row.up_atomic !== "0" || row.down_atomic !== "0");
    expect(sums(found.pair)).toEqual(sums(expected.pair));
    const circle = ["payer_funders", "unfunded_payers"];
    expect(without(found.wallet, ...circle)).toEqual(without(expected.wallet, ...circle));
  } finally {
    launched.letGo();
    await launched.ended;
    await chain.stop();
  }
});
