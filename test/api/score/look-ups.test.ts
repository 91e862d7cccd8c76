import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { openProvider } from "../../../api/platform/chain/provider.ts";
import { every } from "../../../api/platform/clock.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createLookupBudget } from "../../../api/platform/db/lookup-budget.ts";
import type { NotYet } from "../../../api/platform/http/route.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { createInflowReader } from "../../../api/score/lookup/chain.ts";
import type { Payees } from "../../../api/score/lookup/examine.ts";
import { addInflows, type Basis, type KnownBlock, NO_INFLOWS } from "../../../api/score/lookup/inflows.ts";
import { createLookUps } from "../../../api/score/lookup/look-up.ts";
import { createLookupStore, createMarkStore } from "../../../api/score/lookup/store.ts";
import { createScores } from "../../../api/score/read-scores.ts";
import { type ChainReading, windowAt } from "../../../packages/verifier/src/score/facts.ts";
import { addressOf, type InflowProvider, markOf, type Sent, startInflowNode } from "../../support/chain/inflow-node.ts";
import { replyTo } from "../../support/chain/rpc.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

// The data that a look-up uses, under concurrent requests, lost claims, and failing nodes.

const LAST = 1_000;
const BASIS: Basis = { firstBlock: 1, ignored: [] };
const [WALLET, PAYEE, FUNDER] = [addressOf(0xa1), addressOf(0xb1), addressOf(0xf0)];
const PAYERS = [0xc1, 0xc2, 0xc3].map(addressOf);
/** The wallet is funded, and its payee sends money back late. Each payer has a different funder. */
const SENT: Readonly<Record<Address, Readonly<Record<number, Sent>>>> = {
  [WALLET]: { 2: { from: FUNDER, value: 500_000 }, 950: { from: PAYEE, value: 30_000 } },
  ...Object.fromEntries(PAYERS.map((payer, n) => [payer, { 3: { from: addressOf(0xf1 + n), value: 100_000 } }])),
};
const PAYEES: Payees = {
  wallet: WALLET,
  payees: [
    {
      ...{ payee: PAYEE, atomic: 50_000n, unpaid: 0n, isInWindow: true, block: 10, otherPayers: 3 },
      payers: PAYERS.map((payer) => ({ payer, block: 5 })),
    },
  ],
};

const READING: ChainReading = {
  ...{ as_of: "2026-11-27T12:00:00.000Z", as_of_block: LAST },
  chain: {
    ...{ network: "eip155:8453", scope: "selective", first_block: 1, lookup: null, largest_funder: null, payees: [] },
    window: windowAt("2026-11-27T12:00:00.000Z"),
    payments: { days: [], last: null },
    escrow: {
      ...{ buyers: 0, release_days: 0, last_release_tx: null },
      ...{ refunded_buyers: 0, refund_days: 0, last_refund_tx: null },
    },
  },
};

const provider: InflowProvider = { last: LAST, most: { logs: 100, how: "refused" }, before: async () => undefined };
const node = await forFile(
  startInflowNode(
    { wallets: [WALLET, ...PAYERS], transfers: (to, block) => [SENT[to]?.[block]].filter((one) => one !== undefined) },
    provider,
  ),
);
const pool = await forFile(connect((await freshDatabase()).apiUrl, 4));
const [store, marks] = [createLookupStore(pool), createMarkStore(pool)];

afterEach(async () => {
  Object.assign(provider, { last: LAST, before: async () => undefined });
  for (const table of ["inflow", "score_lookup", "lookup_mark", "lookup_budget"])
    await pool.query(`delete from ${table}`);
});

/** Whether claims are renewed every 5 ms, as if responses took very long. */
let isSlow = false;
const renewing = (ms: number, work: () => void) => every(isSlow ? 5 : ms, work);

const readerOf = () => createInflowReader({ provider: openProvider([node.url], 10_000), marks });
let tokens = 0;

function lookUpsOf({ perClient = 1_000, asOfBlock = LAST } = {}) {
  const failures: unknown[] = [];
  const lookUps = createLookUps({
    index: {
      payees: async (wallets) => ({
        ...{ scope: "selective", firstBlock: BASIS.firstBlock, asOfBlock },
        wallets: wallets.map((wallet) => ({ ...PAYEES, wallet })),
      }),
    },
    ...{ store, reader: readerOf(), budget: createLookupBudget(pool, { client: perClient, all: 10_000 }) },
    ...{ ignored: BASIS.ignored, now: () => new Date(), newToken: () => `token ${tokens++}` },
    ...{ sleep: (ms: number) => sleep(ms, undefined, { ref: false }), every: renewing },
    failed: (error) => failures.push(error),
  });
  return { lookUps, failures };
}

const spend = async () => undefined;
const found = async (lookUps: ReturnType<typeof lookUpsOf>["lookUps"]) =>
  (await lookUps.found([WALLET]))?.snapshots.get(WALLET);

/** Ages the remembered final blocks by this many seconds. */
const age = (seconds: number) =>
  pool.query("update lookup_mark set newest_at = newest_at - make_interval(secs => $1)", [seconds]);

test("The newest final block is never one that was only seen in an older range", async () => {
  const reader = readerOf();
  expect(await reader.final(BASIS, spend)).toEqual(markOf(LAST));
  await age(601);
  // As reading in steps does, long after the newest block was found.
  await marks.add(markOf(7), false);
  provider.last = LAST + 5;
  expect(await reader.final(BASIS, spend)).toEqual(markOf(LAST + 5));
});

test("A node that has fallen behind does not move the final block back", async () => {
  const reader = readerOf();
  expect(await reader.final(BASIS, spend)).toEqual(markOf(LAST));
  await age(601);
  provider.last = LAST - 100;
  expect(await reader.final(BASIS, spend)).toEqual(markOf(LAST));
  // Nor does it cause more requests.
  const before = node.asked.all;
  await reader.final(BASIS, spend);
  expect(node.asked.all).toBe(before);
});

test("Returned money counts up to the look-up's block, even if more is already known of the wallet", async () => {
  // One process has read the wallet up to the last block, and another one starts a little earlier.
  const inflows = addInflows(
    NO_INFLOWS,
    Object.entries(SENT[WALLET] ?? {}).map(([block, { from, value }]) => ({
      ...{ block: Number(block), from, value: BigInt(value) },
    })),
    new Set(),
  );
  const by = { token: "another", seconds: 30 };
  await store.claim(BASIS, [WALLET], by);
  await store.save(BASIS, [{ wallet: WALLET, through: markOf(LAST), inflows }], by);
  await store.release(BASIS, [WALLET], by);
  await marks.add(markOf(900), true);
  const { lookUps, failures } = lookUpsOf();
  expect(await lookUps.prepare([WALLET], "a client")).toBeNull();
  const snapshot = await found(lookUps);
  expect(snapshot).toMatchObject({ block: LAST, block_hash: markOf(LAST).hash });
  expect(snapshot?.payees[PAYEE]?.returned).toBe("30000");

  // If nothing is known, the look-up uses the block before.
  for (const table of ["inflow", "score_lookup"]) await pool.query(`delete from ${table}`);
  expect(await lookUps.prepare([WALLET], "a client")).toBeNull();
  expect(await found(lookUps)).toMatchObject({ block: 900, payees: { [PAYEE]: { returned: "0" } } });
  expect(failures).toEqual([]);
});

test("If the client that runs a shared look-up has spent its budget, the waiting clients continue on their own", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  await marks.add(markOf(LAST), true);
  // The first response is wrong, and the client has no budget for another one.
  let isFirst = true;
  provider.before = async (call) => {
    await opened;
    const instead = isFirst ? replyTo(call, []) : undefined;
    isFirst = false;
    return instead;
  };
  await pool.query("insert into lookup_budget select floor(extract(epoch from now()) / 3600)::int, '192.0.2.1', 9");
  const { lookUps } = lookUpsOf({ perClient: 10 });
  const before = node.asked.all;
  const poor = lookUps.prepare([WALLET], "192.0.2.1");
  await expect.poll(() => node.asked.all).toBe(before + 1);
  const others = [1, 2, 3].map((n) => lookUps.prepare([WALLET], `198.51.100.${n}`));
  open();
  expect(await poor).toMatchObject({ isSpent: true });
  expect(await Promise.all(others)).toEqual([null, null, null]);
});

test("A look-up that is missing after settlement is made then, because no score is sold without it", async () => {
  const asked: string[] = [];
  const { lookUps } = lookUpsOf();
  let notYet: NotYet | null = { detail: "later", retryAfterSeconds: 5, isSpent: false };
  const scores = createScores({
    index: { read: async (wallets) => wallets.map(() => READING) },
    lookUps: {
      ...lookUps,
      prepare: async (wallets, client) => {
        asked.push(client);
        return notYet ?? lookUps.prepare(wallets, client);
      },
    },
    certificates: { newest: async () => [] },
    exams: { newest: async () => [] },
    ...{ baseUrl: "https://trust.example", now: () => new Date() },
  });
  expect(await scores.ready([WALLET])).toBe(false);
  expect(await scores.of([WALLET])).toBeNull();
  notYet = null;
  const [record] = (await scores.of([WALLET])) ?? [];
  expect(record?.inputs.chain).toMatchObject({ lookup: { block: LAST }, largest_funder: FUNDER });
  expect(await scores.ready([WALLET])).toBe(true);
  await scores.of([WALLET]);
  expect(asked).toEqual(["paid", "paid"]);
});

test("Every request to a node is counted, including those with a wrong response", async () => {
  await marks.add(markOf(LAST), true);
  let wrong = 3;
  provider.before = async (call) => (wrong-- > 0 ? replyTo(call, []) : undefined);
  const { lookUps } = lookUpsOf();
  const before = node.asked.all;
  expect(await lookUps.prepare([WALLET], "a client")).toBeNull();
  const { rows } = await pool.query("select used from lookup_budget where client = 'a client'");
  expect(rows).toEqual([{ used: node.asked.all - before }]);
});

test("Clients in one network get at most half of a process's concurrent look-ups", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  await marks.add(markOf(LAST), true);
  provider.before = async () => void (await opened);
  const { lookUps } = lookUpsOf();
  const before = node.asked.all;
  const flood = Array.from({ length: 5 }, (_, n) => lookUps.prepare([addressOf(0xd0 + n)], `192.0.2.${n}`));
  await expect.poll(() => node.asked.all).toBe(before + 4);
  const other = lookUps.prepare([WALLET], "198.51.100.1");
  await expect.poll(() => node.asked.all).toBe(before + 5);
  open();
  const refused = (await Promise.all(flood)).filter((notYet) => notYet !== null);
  expect(refused).toMatchObject([{ isSpent: false, detail: expect.stringContaining("Other wallets") }]);
  expect(await other).toBeNull();
});

test("A claim lasts until its response arrives", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  await marks.add(markOf(LAST), true);
  provider.before = async () => void (await opened);
  isSlow = true;
  const { lookUps } = lookUpsOf();
  const before = node.asked.all;
  const work = lookUps.prepare([WALLET], "a client");
  await expect.poll(() => node.asked.all).toBe(before + 1);
  await pool.query("update inflow set claimed_until = now() - interval '1 second'");
  const lapsed = "select from inflow where claimed_until < now()";
  await expect.poll(async () => (await pool.query(lapsed)).rowCount).toBe(0);
  isSlow = false;
  open();
  expect(await work).toBeNull();
  expect((await pool.query("select from inflow where claimed_by is not null")).rowCount).toBe(0);
});

test("A response that arrives after its claim has lapsed is kept but replaces no newer one", async () => {
  const [slow, next] = [
    { token: "slow", seconds: -1 },
    { token: "next", seconds: 30 },
  ];
  const to = (mark: KnownBlock, count: number) => ({
    ...{ wallet: WALLET, through: mark, inflows: { ...NO_INFLOWS, count } },
  });
  await store.claim(BASIS, [WALLET], slow);
  expect(await store.claim(BASIS, [WALLET], next)).toHaveLength(1);
  await store.save(BASIS, [to(markOf(500), 1)], slow);
  expect(await store.known(BASIS, [WALLET])).toEqual([to(markOf(500), 1)]);
  // The other process's claim is still valid.
  expect(await store.claim(BASIS, [WALLET], { token: "third", seconds: 30 })).toEqual([]);
  await store.save(BASIS, [to(markOf(600), 2)], next);
  await store.save(BASIS, [to(markOf(550), 3)], slow);
  expect(await store.known(BASIS, [WALLET])).toEqual([to(markOf(600), 2)]);
});
