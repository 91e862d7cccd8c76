import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../api/platform/db/connection.ts";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import type { ScoreIndex } from "../../api/score/index-store.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import type { CertificateFact, ChainReading } from "../../packages/verifier/src/score/facts.ts";
import { parseScoreFacts } from "../../packages/verifier/src/score/parse-facts.ts";
import type { Assessment } from "../../packages/verifier/src/score/record.ts";
import { score } from "../../packages/verifier/src/score/score.ts";
import { startTestChain, type TestChain } from "../support/chain/chain.ts";
import { type Launched, launchIndexer } from "../support/indexer/launched.ts";
import { freshDatabase, type TestDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SERVICE } from "./history.ts";
import { AGENTS, CROWDED_PAYER, makeCrowded, playEconomy } from "./score-economy.ts";
import { describeLookUps, lookUpsOf, readSelective } from "./score-lookups.ts";
import { walletOf } from "./score-scene.ts";

// One chain and one index of it, played once. The tests only read.

const DAY_MS = 86_400_000;

let chain: TestChain;
let pool: pg.Pool;
let index: ScoreIndex;
let launched: Launched;
let owner: pg.Pool;
/** The last block's time. */
let end: Date;
let lastBlock: number;
let readings: ReadonlyMap<string, ChainReading>;
/** The readings of an index of scope `selective`, with its look-ups. */
let selective: ReadonlyMap<string, ChainReading>;
let launchedSelective: Launched;
let selectivePool: pg.Pool;
let home: TestDatabase;

beforeAll(async () => {
  chain = await startTestChain({ mining: "manual" });
  const lastDay = await playEconomy(chain);
  await chain.client.setNextBlockTimestamp({ timestamp: BigInt((lastDay + 1) * 86_400) });
  await chain.mine();
  const block = await chain.client.getBlock();
  [end, lastBlock] = [new Date(Number(block.timestamp) * 1000), Number(block.number)];
  const database = await freshDatabase();
  pool = connect(database.apiUrl, 1);
  owner = new pg.Pool({ connectionString: database.ownerUrl, max: 1 });
  index = createScoreIndex(pool, { viewsSchema: "live" });
  launched = launchIndexer({
    DATABASE_URL: database.indexerUrl,
    BASE_RPC_URL: chain.rpcUrl,
    PAY_TO_ADDRESS: SERVICE,
    INDEX_SCOPE: "full",
  });
  home = await freshDatabase();
  selectivePool = connect(home.apiUrl, 2);
  launchedSelective = launchIndexer({
    ...{ DATABASE_URL: home.indexerUrl, BASE_RPC_URL: chain.rpcUrl, PAY_TO_ADDRESS: SERVICE },
    INDEX_SCOPE: "selective",
  });
  await Promise.all([reach(launched, pool), reach(launchedSelective, selectivePool)]);
  const read = await index.read(AGENTS.map(walletOf), end);
  readings = new Map(AGENTS.map((name, place) => [name, read?.[place] as ChainReading]));
  const { lookUps } = lookUpsOf({ pool: selectivePool, rpcUrls: [chain.rpcUrl], now: () => end });
  const looked = await readSelective(selectivePool, lookUps, { wallets: AGENTS.map(walletOf), now: end });
  selective = new Map(AGENTS.map((name, place) => [name, looked[place] as ChainReading]));
}, 120_000);

/** Waits until an index has all blocks. */
async function reach(index: Launched, reader: pg.Pool): Promise<void> {
  await index.untilLogged("index ready");
  const { position } = createActivityIndex(reader, { viewsSchema: "live" });
  const there = await waitUntil(async () => (await position())?.block === lastBlock, 45_000);
  if (!there) throw new Error(`The index did not reach block ${lastBlock}.`);
}

afterAll(async () => {
  launched?.closeInput();
  launchedSelective?.closeInput();
  await Promise.all([launched?.ended, launchedSelective?.ended, pool?.end(), owner?.end(), selectivePool?.end()]);
  await chain?.stop();
});

const reading = (name: (typeof AGENTS)[number]): ChainReading => {
  const found = readings.get(name);
  if (found === undefined) throw new Error(`There is no reading of ${name}.`);
  return found;
};

/** Every certificate that can be bought, fresh. */
const certificates = (): readonly CertificateFact[] =>
  (["suite", "scam", "recipient"] as const).map((product) => ({
    id: product,
    url: `https://trust.example/cert/${product}`,
    product,
    result: "pass",
    issued_at: new Date(end.getTime() - DAY_MS).toISOString(),
    valid_until: new Date(end.getTime() + 29 * DAY_MS).toISOString(),
    reversed_at: null,
  }));

function assess(name: (typeof AGENTS)[number]): Assessment {
  const facts = { wallet: walletOf(name), certificates: certificates(), ...reading(name), seller_exams: [] };
  expect(parseScoreFacts(JSON.parse(JSON.stringify(facts)))).toEqual(facts);
  return score(facts);
}

const USD = 1_000_000;
/** An agent's payees: their number, and for each the sums in both directions and the number of its payers' funders. */
const payees = (count: number, [value, returned]: readonly [number, number], other_funders: number) =>
  Array.from({ length: count }, () => ({
    value: `${value}`,
    returned: `${returned}`,
    other_funders,
    unfunded_payers: 0,
  }));

interface Expected {
  readonly funder: string | null;
  /** Qualifying payments and their sum, for each day with any. */
  readonly days: readonly (readonly [number, number])[];
  readonly payees: readonly object[];
  /** The reasons why its payees do not count. */
  readonly reasons: readonly (string | null)[];
  readonly score: number;
  readonly tier: string;
}

const weekly = (count: number, value: number) => Array.from({ length: 5 }, () => [count, value] as const);
const NOT_SHOWN = { reasons: [], score: 77, tier: "C" };

const EXPECTED: Readonly<Record<(typeof AGENTS)[number], Expected>> = {
  honest: {
    ...{ funder: "exchange 5", days: weekly(8, 8 * USD), payees: payees(8, [5 * USD, 0], 4) },
    ...{ reasons: [null], score: 90, tier: "A" },
  },
  dusted: {
    ...{ funder: "exchange 5", days: weekly(8, 8 * USD), payees: payees(8, [5 * USD, 0], 4) },
    ...{ reasons: [null], score: 90, tier: "A" },
  },
  "ring leader": {
    ...{ funder: "exchange 6", days: weekly(9, 0.9 * USD), payees: payees(9, [0.5 * USD, 0], 0) },
    ...{ ...NOT_SHOWN, reasons: ["too_few_funders"] },
  },
  puppeteer: {
    ...{ funder: "exchange 5", days: weekly(5, 5 * USD), payees: payees(5, [5 * USD, 0], 1) },
    ...{ ...NOT_SHOWN, reasons: ["too_few_funders"] },
  },
  ping: {
    ...{ funder: "exchange 5", days: weekly(5, 5 * USD), payees: payees(5, [5 * USD, 2.5 * USD], 4) },
    ...{ ...NOT_SHOWN, reasons: ["reciprocal_flow"] },
  },
  sprayer: { funder: "exchange 5", days: weekly(13, 13 * 9_999), payees: [], ...NOT_SHOWN },
  burst: {
    ...{ funder: "exchange 5", days: [[40, 40 * USD]], payees: payees(8, [5 * USD, 0], 4) },
    ...{ reasons: [null], score: 77, tier: "C" },
  },
  sinker: {
    ...{ funder: "sink", days: weekly(5, 1.5 * USD), payees: payees(5, [1.5 * USD, 0], 0) },
    ...{ ...NOT_SHOWN, reasons: ["too_few_funders"] },
  },
  bought: { funder: "exchange 5", days: [], payees: [], reasons: [], score: 70, tier: "C" },
  forger: {
    ...{ funder: "exchange 7", days: weekly(8, 8 * USD), payees: payees(8, [5 * USD, 0], 3) },
    ...{ reasons: [null], score: 90, tier: "A" },
  },
  unseen: { funder: null, days: [], payees: [], reasons: [], score: 70, tier: "C" },
};

describe("agents with every certificate that can be bought", () => {
  test.each([
    ["An honest agent has independent counterparties", "honest"],
    ["An honest agent loses nothing if a ring sends dust to it", "dusted"],
    ["A ring with one source of money has no independent counterparties", "ring leader"],
    ["Payees whose payers all have one funder are not independent", "puppeteer"],
    ["Payees that send half of the money back are not counterparties", "ping"],
    ["Dust makes no counterparty, at any number of payees", "sprayer"],
    ["A burst of payments on one day is one week's activity", "burst"],
    ["Payees that pass all money to the agent's funder, who also funds their payers, are not independent", "sinker"],
    ["Certificates without payments to others are not enough for a B", "bought"],
    ["A wallet that was never seen has no facts", "unseen"],
    // The filter's limit, and so the price of a forgery: three funders of three payers, each used only by the forger.
    ["Funders two steps from one source pass as independent", "forger"],
  ] as const)("%s", (_, name) => {
    const { chain: facts } = reading(name);
    const { funder, reasons, ...expected } = EXPECTED[name];
    const assessed = assess(name);
    expect({
      days: facts.payments.days.toSorted((a, b) => (a.day < b.day ? -1 : 1)).map(({ count, value }) => [count, +value]),
      payees: facts.payees.map(({ value, returned, other_funders, unfunded_payers }) => ({
        ...{ value, returned, other_funders, unfunded_payers },
      })),
      score: assessed.score,
      tier: assessed.tier,
    }).toEqual(expected);
    expect(facts.largest_funder).toBe(funder && walletOf(funder));
    const found = assessed.components.independent_counterparties.facts.map((fact) => "reason" in fact && fact.reason);
    expect([...new Set(found)]).toEqual(reasons);
  });
});

test.each(AGENTS)("In scope selective, %s has the same score as in an index of everything", (name) => {
  const { funder, reasons, score: points, tier } = EXPECTED[name];
  const given = selective.get(name) as ChainReading;
  const facts = { wallet: walletOf(name), certificates: certificates(), ...given, seller_exams: [] };
  expect(parseScoreFacts(JSON.parse(JSON.stringify(facts)))).toEqual(facts);
  const assessed = score(facts);
  const found = assessed.components.independent_counterparties.facts.map((fact) => "reason" in fact && fact.reason);
  expect([assessed.score, assessed.tier, [...new Set(found)]]).toEqual([points, tier, reasons]);
  expect(given.chain.largest_funder).toBe(given.chain.lookup === null ? null : funder && walletOf(funder));
});

describeLookUps(() => ({ pool: selectivePool, database: home, rpcUrl: chain.rpcUrl, end }));

describe("a reading", () => {
  test("It is as of now, or of the block if that is later", async () => {
    const at = async (ms: number) => (await index.read([walletOf("honest")], new Date(end.getTime() + ms)))?.[0]?.as_of;
    expect(await at(-600_000)).toBe(end.toISOString());
    expect(await at(59_999)).toBe(new Date(end.getTime() + 59_999).toISOString());
  });

  test("It is missing if the index is more than a minute behind, or down", async () => {
    const read = (ms: number) => index.read([walletOf("honest")], new Date(end.getTime() + ms));
    expect(await read(60_000)).toHaveLength(1);
    expect(await read(60_001)).toBeNull();
    expect(await createScoreIndex(pool, { viewsSchema: "nowhere" }).read([walletOf("honest")], end)).toBeNull();
  });
});

test("The facts of a payer with 20,000 payees are found by key, with one cached plan", async () => {
  const schema = String(launched.logged("ponder started")[0]?.schema);
  await makeCrowded(owner, schema);
  const crowded = createScoreIndex(pool, { viewsSchema: "crowded" });
  const [found] = (await crowded.read([CROWDED_PAYER], end)) ?? [];
  const facts = found?.chain.payees.map(({ other_funders, unfunded_payers }) => [other_funders, unfunded_payers]);
  expect(facts).toEqual(Array.from({ length: 64 }, () => [19, 0]));
  const prepared = await pool.query(
    "select statement, generic_plans from pg_prepared_statements where name ~ 'crowded'",
  );
  const { statement, generic_plans } = prepared.rows[0];
  expect(generic_plans).toBe("1");
  const { rows } = await pool.query(`explain (analyze, buffers, format json) ${statement}`, [
    [CROWDED_PAYER],
    end.getTime(),
  ]);
  const { Plan: plan } = rows[0]["QUERY PLAN"][0];
  // Five tables, 64 payees, and at most four pages per index look-up and row.
  expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(5 * 64 * 4 + 100);
});
