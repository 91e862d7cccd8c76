import type pg from "pg";
import type { Address } from "viem";
import type { TestChain } from "../support/chain/chain.ts";
import { createScene, names, type Scene } from "./score-scene.ts";

const USD = 1_000_000n;
const CENT = 10_000n;
const WEEKS = 5;

const MERCHANTS = names("merchant", 8);
const PONGS = names("pong", 5);
const CUSTOMERS = names("customer", 4);
const RING = names("ring", 9);
const PUPPETS = names("puppet", 5);
const PUPPET_PAYERS = names("puppet payer", 4);
const SINK_PAYEES = names("sink payee", 5);
const SINK_PAYERS = names("sink payer", 4);
const MIDDLES = names("middle", 3);
const SHILLS = names("shill", 3);
const FAKES = names("fake", 8);

/** The scored agents, named for their known behavior. */
export const AGENTS = [
  ...["honest", "dusted", "ring leader", "puppeteer", "ping", "sprayer"],
  ...["burst", "sinker", "bought", "forger", "unseen"],
] as const;

/** Gives every wallet its money for the first day. The forger's funders are chained. */
async function fund({ fund, mine, pay }: Scene, day: number): Promise<void> {
  for (const [index, customer] of CUSTOMERS.entries()) await fund(`exchange ${index + 1}`, [customer], 5n * USD);
  const honest = ["honest", "dusted", "puppeteer", "ping", "sprayer", "burst", "bought"];
  await fund("exchange 5", honest, 50n * USD);
  await fund("exchange 6", ["ring leader", ...RING], 8n * USD);
  await fund("exchange 6", PUPPET_PAYERS, 2n * USD);
  await fund("exchange 7", ["sink", "forger", ...MIDDLES], 40n * USD);
  await mine(day);
  pay("sink", ["sinker"], 10n * USD);
  pay("sink", SINK_PAYERS, USD);
  for (const [index, middle] of MIDDLES.entries()) pay(middle, SHILLS.slice(index, index + 1), USD);
  await mine(day + 1);
}

/** Makes payees look like merchants, because others pay them. */
async function shop({ mine, pay }: Scene, day: number): Promise<void> {
  for (const customer of CUSTOMERS) pay(customer, [...MERCHANTS, ...PONGS], 5n * CENT);
  for (const [index, member] of RING.entries()) {
    const next = [1, 2, 3].map((step) => RING[(index + step) % RING.length] as string);
    pay(member, next, 5n * CENT);
  }
  for (const payer of PUPPET_PAYERS) pay(payer, PUPPETS, 5n * CENT);
  for (const payer of SINK_PAYERS) pay(payer, SINK_PAYEES, 5n * CENT);
  for (const shill of SHILLS) pay(shill, FAKES, 5n * CENT);
  await mine(day);
}

async function oneWeek({ mine, pay, payService }: Scene, day: number, isLast: boolean): Promise<void> {
  pay("honest", MERCHANTS, USD);
  pay("dusted", MERCHANTS, USD);
  for (const member of RING) pay(member, ["dusted"], CENT);
  pay("ring leader", RING, 10n * CENT);
  pay("puppeteer", PUPPETS, USD);
  pay("ping", PONGS, USD);
  for (const pong of PONGS) pay(pong, ["ping"], 50n * CENT);
  pay("sprayer", [...MERCHANTS, ...PONGS], CENT - 1n);
  if (isLast) for (let round = 0; round < WEEKS; round += 1) pay("burst", MERCHANTS, USD);
  pay("sinker", SINK_PAYEES, 30n * CENT);
  for (const payee of SINK_PAYEES) pay(payee, ["sink"], 30n * CENT);
  payService("bought", 50n * CENT);
  pay("forger", FAKES, USD);
  await mine(day);
}

/**
 * Plays five weeks of honest and fake business, starting on the first day after the chain's head. Returns the last day,
 * counted from 1970.
 */
export async function playEconomy(chain: TestChain): Promise<number> {
  const scene = createScene(chain);
  const { timestamp } = await chain.client.getBlock();
  const first = Math.floor(Number(timestamp) / 86_400) + 1;
  await fund(scene, first);
  await shop(scene, first + 2);
  const days = Array.from({ length: WEEKS }, (_, week) => first + 3 + 7 * week);
  for (const day of days) await oneWeek(scene, day, day === days.at(-1));
  return days.at(-1) ?? first;
}

const TABLES = [
  ...["wallet_day", "pair", "wallet", "paid", "payee_slot", "payer_funder"],
  ...["escrow_day", "coverage", "position"],
];
export const CROWDED_PAYER: Address = `0x00000001${"0".repeat(32)}`;
const address = (kind: number, n: string | number) =>
  `decode(lpad(to_hex(${kind}), 8, '0') || lpad(to_hex(${n}), 32, '0'), 'hex')`;
const [payer, payee, funder] = [address(1, 0), address(2, "n"), address(3, "m")];
const PAYEES = "generate_series(1, 20000) n";

/**
 * Creates the schema `crowded`: a copy of Ponder's tables with a payer of 20,000 payees, each with payers of 20
 * funders.
 */
export async function makeCrowded(owner: pg.Pool, schema: string): Promise<void> {
  const copies = TABLES.map(
    (table) => `create table crowded.${table} (like ${schema}.${table} including all);
      insert into crowded.${table} select * from ${schema}.${table};`,
  );
  await owner.query(`create schema crowded; grant usage on schema crowded to trust_api; ${copies.join("\n")}
    insert into crowded.pair select 20000, ${payer}, ${payee}, 50000, 0 from ${PAYEES};
    insert into crowded.paid select 1, 1, 1, null, ${payer}, ${payee}, '', 50000, 0, null from ${PAYEES};
    insert into crowded.payee_slot select n % 64, n, ${payer}, ${payee} from generate_series(19937, 20000) n;
    insert into crowded.payer_funder select ${payee}, ${funder} from generate_series(19001, 20000) n, generate_series(1, 20) m;
    insert into crowded.wallet (wallet, funder, funder_atomic, payees, payers, payer_funders, unfunded_payers)
      select ${payee}, null, 0, 0, 21, 20, 1 from ${PAYEES} union all select ${payer}, ${address(3, 1)}, 1, 20000, 0, 0, 0;
    grant select on all tables in schema crowded to trust_api`);
  // The planner depends on table sizes.
  await owner.query("analyze");
}
