import { setTimeout as sleep } from "node:timers/promises";
import { type Address, type LocalAccount, parseEventLogs } from "viem";
import { expect, onTestFailed, test, vi } from "vitest";
import { verdictId } from "../../../api/arbiter/request.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { LOG_ANCHOR, logAnchorAbi } from "../../../contracts/log-anchor.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { chance } from "../../support/chance.ts";
import { eventually } from "../../support/eventually.ts";
import { killStage } from "../../support/log/kill-stage.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import type { ApiProcess } from "../../support/service/api-process.ts";

const KILLS = 2;
const PAYERS = 6;
const seed = Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31));
vi.setConfig({ testTimeout: 120_000 });

const { stage, start, node, witness, shop, log } = await killStage();
const { owner, database, chain } = stage;
const running: ApiProcess[] = [await start()];
const payer = await newPayer(chain, 1_000_000_000n);
const sold: string[] = [];
await log.isStarted();

type Seller = () => ApiProcess | undefined;

/** Retries the payment at the chosen process until it succeeds. */
async function answered(pick: Seller, path: string, ...of: readonly [Record<string, string>, string?]) {
  let body: Answer["body"] = {};
  await eventually(async () => {
    const answer = await post(`${pick()?.url}${path}`, ...of).catch(() => null);
    if (answer?.status === 200) ({ body } = answer);
    return answer?.status;
  }, 200);
  return body;
}

async function buy(by: LocalAccount, pick: Seller = () => running[0]): Promise<void> {
  const payment = v2(await signPayment(by, { validBefore: unixNow() + 3_600n }));
  const { cert_url } = await answered(pick, "/test/basic", payment);
  sold.push(`certificate ${String(cert_url).replace(/.*\//, "")}`);
}

async function buyVerdict(by: LocalAccount, pick: Seller = () => running[0]): Promise<void> {
  const claim = await signPayment(by, { validBefore: unixNow() + 3_600n });
  const { from, nonce } = claim.authorization;
  const conditions = { url: `${shop.url}/${nonce}`, expect_contains: "delivered" };
  const body = JSON.stringify({ category: "http-delivery", conditions, deal_ref: nonce });
  await answered(pick, "/arbiter/verify", v2(claim), body);
  const { id: network, usdc } = NETWORKS["eip155:8453"];
  const payment = { network, asset: usdc.address, payer: from.toLowerCase() as Address, nonce };
  sold.push(`verdict ${verdictId(payment)}`);
}

async function restart(): Promise<void> {
  running[0] = await start();
}

/** Makes two sales while a lock stops the log's turn, and kills the process once `isThere` resolves. */
async function killedAt(lock: string, isThere: () => Promise<void>) {
  await log.nothingWaits();
  const before = await log.written();
  await withClient(database.ownerUrl, async (holder) => {
    await holder.query("BEGIN");
    await holder.query(lock);
    await Promise.all([buy(payer), buyVerdict(payer)]);
    await isThere();
    await running[0]?.kill();
  });
  await log.noSessions();
  return { before, after: await log.written() };
}

const LOG_TURN = "SELECT pg_advisory_xact_lock(7402403)";

test.for([
  ["before its turn", LOG_TURN, null],
  ["after signing, with its entries written,", "LOCK TABLE log_tile IN SHARE ROW EXCLUSIVE MODE", "log_tile"],
  ["with its entries and tiles written", "LOCK TABLE log_checkpoint IN SHARE ROW EXCLUSIVE MODE", "log_checkpoint"],
] as const)(
  "If a process is killed %s, its turn is rolled back and the next process repeats it",
  async ([, lock, table]) => {
    const { before, after } = await killedAt(lock, async () => {
      if (table !== null) await stage.untilBlocked(`INSERT INTO ${table}`);
    });
    expect(after).toEqual({ ...before, waiting: 2 });
    await restart();
    await log.isWhole(running[0], sold);
  },
);

test("If a process is killed before it learns of its commit, the turn is complete and the next process continues", async () => {
  await stage.lockCommitsOf("log_checkpoint");
  const { before, after } = await killedAt("SELECT pg_advisory_xact_lock(1)", () => stage.untilBlocked("COMMIT"));
  expect(after.checkpoints).toBe(before.checkpoints + 1);
  expect(after.entries).toBeGreaterThan(before.entries);
  expect([after.leaves, after.entries + after.waiting]).toEqual([after.entries, before.entries + 2]);
  await restart();
  await buy(payer);
  await log.isWhole(running[0], sold);
});

test("If a process is killed after a cosignature and during an anchor, both are recovered without a duplicate", async () => {
  const sending = node.hold("eth_sendRawTransaction", LOG_ANCHOR.address);
  const answer = witness.loseNextAfter((await log.written()).entries);
  await buy(payer);
  await log.nothingWaits();
  await log.dayPasses();
  const [{ size }] = await Promise.all([answer.cosigned, sending.reached]);
  await running[0]?.kill();
  answer.release();
  sending.release();
  expect((await owner.query("SELECT FROM log_cosignature WHERE size = $1", [size])).rowCount).toBe(0);
  const { rows } = await owner.query("SELECT size, '0x' || encode(root, 'hex') AS root FROM log_anchor");
  await restart();
  await log.isWhole(running[0], sold);
  const anchored = async () => {
    const logs = await chain.client.getLogs({ address: LOG_ANCHOR.address, fromBlock: 0n });
    return parseEventLogs({ abi: logAnchorAbi, logs }).map(({ args }) => ({
      size: String(args.size),
      root: args.root,
    }));
  };
  await eventually(anchored, rows);
  await eventually(async () => (await owner.query("SELECT state FROM log_anchor")).rows[0].state !== "sending", true);
  expect([rows.length, await anchored()]).toEqual([1, rows]);
});

const TURN = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7402403";

test(`${KILLS} kills of one of two selling processes lose and duplicate nothing, and readers see one log`, async () => {
  onTestFailed(() => console.error(`KILL_SEED=${seed}`));
  const random = chance(seed);
  running.push(await start());
  let isOver = false;
  const payers = await Promise.all(Array.from({ length: PAYERS }, () => newPayer(chain, 1_000_000_000n)));
  const buying = Promise.all(
    payers.map(async (by, at) => {
      const choose = chance(seed + 1 + at);
      do await (choose() < 0.7 ? buy : buyVerdict)(by, () => running[Math.floor(choose() * 2)]);
      while (!isOver);
    }),
  );
  const seen: string[] = [];
  const reading = (async () => {
    for (let at = 0; !isOver; at++) {
      const note = await log.served(running[at % 2]).catch(() => null);
      if (note !== null && note !== seen.at(-1)) seen.push(note);
      await sleep(20);
    }
  })();
  const both = Promise.all([buying, reading]);
  both.catch(() => undefined);
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      // Waits for a turn, because more can go wrong close to one.
      const deadline = Date.now() + 1_500;
      while ((await owner.query(TURN)).rowCount === 0 && Date.now() < deadline) await sleep(1);
      await sleep(random() * 20);
      const slot = Math.floor(random() * 2);
      await running[slot]?.kill();
      await stage.endLeases();
      running[slot] = await start();
    }
  } finally {
    isOver = true;
  }
  await both;
  expect(await log.faultsIn(seen)).toEqual([]);
  await log.isWhole(running[0], sold);
});
