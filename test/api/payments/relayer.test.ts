import { setTimeout as sleep } from "node:timers/promises";
import { bytesToHex, type Hex, type LocalAccount } from "viem";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { blocksFrom } from "../../support/chain/blocks.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged, paymentsOnChain } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, SHARED_RELAYER, startApiProcess } from "../../support/service/api-process.ts";
import { freshDatabase, type TestDatabase } from "../../support/service/database.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { RELAYER, startService, type TestService, type TestServicePlan } from "../../support/service/service.ts";

const SETTLEMENTS = 100;
const STUCK = 32;
const PAYERS = 10;
const AT_ONCE = 16;
const soon = { timeout: 20_000, interval: 100 };

let chain: TestChain;
let database: TestDatabase;
const services: TestService[] = [];

beforeEach(async () => {
  chain = await startTestChain();
  database = await freshDatabase();
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.stop()));
  await chain?.stop();
});

/** One more part of the same installation: the same database, chain and keys. */
async function another(plan: Partial<TestServicePlan> = {}): Promise<TestService> {
  const [first] = services;
  const { signingKey, sealingKey } = first?.config ?? {};
  const config = signingKey && sealingKey ? { signingKey, sealingKey } : {};
  const service = await startService({ chain, database, config, ...plan });
  services.push(service);
  return service;
}

const buy = ({ url }: { readonly url: string }, signed: Signed) => post(`${url}/test/basic`, v2(signed));

interface Relayed {
  readonly nonce: number;
  readonly state: string;
  readonly hashes: readonly Hex[];
  /** How many payments it is for. */
  readonly purposes: number;
}

/** The transactions that the processes stored, by nonce. */
const relayed = (): Promise<Relayed[]> =>
  withClient(database.ownerUrl, async (client) => {
    const { rows } = await client.query<{ nonce: string; state: string; hashes: Buffer[]; purposes: number }>(
      "SELECT nonce, state, hashes, cardinality(purposes) AS purposes FROM relay ORDER BY nonce, id",
    );
    return rows.map(({ nonce, state, hashes, purposes }) => ({
      purposes,
      nonce: Number(nonce),
      state,
      hashes: hashes.map((hash) => bytesToHex(hash)),
    }));
  });

/** The nonces of the relayer's transactions on the chain, in the order of its blocks. */
async function minedNonces(relayer: string = RELAYER.address): Promise<number[]> {
  const blocks = await blocksFrom(chain, 0);
  return blocks.flatMap(({ transactions }) =>
    transactions.filter(({ from }) => from.toLowerCase() === relayer.toLowerCase()).map(({ nonce }) => nonce),
  );
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

test("two processes with one key, then four, settle payments in batches: each charged once, no nonce left out, every replacement seen", async () => {
  const sepolia = await startTestChain({ network: "eip155:84532" });
  await fundRelayer(chain);
  const plan = { database, baseRpcUrl: chain.rpcUrl, baseSepoliaRpcUrl: sepolia.rpcUrl };
  const processes = await Promise.all([startApiProcess(plan), startApiProcess(plan)]);
  try {
    const all = await newPayments(2 * SETTLEMENTS + STUCK);
    const stuck = all.splice(0, STUCK);
    await settleMany(processes, all.slice(SETTLEMENTS));
    processes.push(...(await Promise.all([startApiProcess(plan), startApiProcess(plan)])));
    await settleMany(processes, all.slice(0, SETTLEMENTS));
    const replaced = await settleReplaced(processes, stuck);

    const paid = (await paymentsOnChain({ chain: chain.client })).filter(({ to }) => to.toLowerCase() === PAY_TO);
    const signed = [...all, ...stuck].map(({ authorization }) => authorization.nonce);
    expect(paid.map(({ nonce }) => nonce).sort()).toEqual(signed.sort());
    const nonces = await minedNonces(SHARED_RELAYER);
    expect(nonces).toEqual(upTo(nonces.length));
    expect(nonces.length).toBeLessThan(signed.length);
    await chain.mine(3);
    const open = async () => (await relayed()).filter(({ state }) => state !== "final").length;
    await expect.poll(open, soon).toBe(0);
    const rows = await relayed();
    expect(rows.map(({ nonce }) => nonce)).toEqual(nonces);
    expect([...new Set(rows.map(({ state }) => state))]).toEqual(["final"]);
    // What was mined is the replacement, which its process had not sent.
    const carriers = new Set(paid.map(({ transaction }) => transaction));
    for (const { nonce, hashes } of rows) expect([nonce, hashes.length]).toEqual([nonce, nonce < replaced ? 1 : 2]);
    expect(carriers).toEqual(new Set(rows.map(({ hashes }) => hashes.at(-1))));
  } finally {
    await Promise.all([...processes, sepolia].map((one) => one.stop()));
  }
}, 120_000);

async function newPayments(count: number): Promise<Signed[]> {
  const payers: LocalAccount[] = [];
  while (payers.length < PAYERS) payers.push(await newPayer(chain));
  const validBefore = unixNow() + 3_600n;
  return Promise.all(upTo(count).map((index) => signPayment(payers[index % PAYERS] as LocalAccount, { validBefore })));
}

/** The same header again, to the same process, until something else than 503 comes back. */
async function answered(at: { readonly url: string }, signed: Signed): Promise<number> {
  for (const deadline = Date.now() + 60_000; ; await sleep(100)) {
    const { status } = await buy(at, signed);
    if (status !== 503 || Date.now() > deadline) return status;
  }
}

/** Every payment is answered, whichever process it went to. */
async function settleMany(processes: readonly { readonly url: string }[], signed: readonly Signed[]): Promise<void> {
  const waiting = [...signed.entries()];
  const statuses: number[] = [];
  const buyer = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const at = processes[next[0] % processes.length] as { readonly url: string };
      statuses.push((await buy(at, next[1])).status);
    }
  };
  await Promise.all(upTo(AT_ONCE).map(buyer));
  expect(statuses).toEqual(signed.map(() => 200));
}

/** Likewise, while fees rise and nothing is mined before its replacement. Returns the first of the nonces. */
async function settleReplaced(processes: readonly { readonly url: string }[], signed: readonly Signed[]) {
  const first = (await relayed()).length;
  const added = async () => (await relayed()).slice(first);
  await chain.client.setAutomine(false);
  const statuses = signed.map((one, index) => answered(processes[index % processes.length] as ApiProcess, one));
  const members = async () => (await added()).reduce((sum, { purposes }) => sum + purposes, 0);
  await expect.poll(members, soon).toBe(signed.length);
  const { baseFeePerGas } = await chain.client.getBlock();
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: (baseFeePerGas ?? 1n) * 50n });
  await chain.mine();
  const signatures = async () => new Set((await added()).map(({ hashes }) => hashes.length));
  await expect.poll(signatures, soon).toEqual(new Set([2]));
  await chain.client.setAutomine(true);
  await chain.mine();
  expect(await Promise.all(statuses)).toEqual(signed.map(() => 200));
  return first;
}

/** Who waits for an advisory lock of this database. */
const WAITING = `SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`;

test("a nonce that became final while a process waited for its turn is not handed out again", async () => {
  const service = await another();
  const [one, two] = [await signPayment(await newPayer(chain)), await signPayment(await newPayer(chain))];
  await chain.client.setAutomine(false);
  const answers = [buy(service, one)];
  await expect.poll(async () => (await relayed()).length, soon).toBe(1);
  await withClient(database.ownerUrl, async (client) => {
    await client.query("SELECT pg_advisory_lock($1, hashtext($2))", [chain.network.chainId, RELAYER.address]);
    answers.push(buy(service, two));
    await expect.poll(async () => (await client.query(WAITING)).rowCount, soon).toBe(1);
    await chain.client.setAutomine(true);
    await chain.mine(4);
    await expect.poll(async () => (await relayed()).map(({ state }) => state), soon).toEqual(["final"]);
    await client.query("SELECT pg_advisory_unlock($1, hashtext($2))", [chain.network.chainId, RELAYER.address]);
  });
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  await Promise.all([chargedOnce(chain, one), chargedOnce(chain, two)]);
  expect(await minedNonces()).toEqual([0, 1]);
}, 60_000);

test("what the chain lacks after a restart is sent again: the same transaction, and no second charge", async () => {
  const before = await another({ jobs: false });
  const signed = await signPayment(await newPayer(chain));
  await chain.client.setAutomine(false);
  const cut = buy(before, signed).then(
    () => "answered",
    () => "cut off",
  );
  const pooled = async () => (await chain.client.getTxpoolStatus()).pending;
  await expect.poll(pooled, soon).toBe(1);
  const [stored] = await relayed();
  await chain.client.dropTransaction({ hash: stored?.hashes[0] ?? "0x" });
  expect(await pooled()).toBe(0);

  const after = await another();
  services.splice(services.indexOf(before), 1);
  await Promise.all([before.stop(), backInThePool(signed, after)]);
  expect(await cut).toBe("cut off");
  expect((await relayed()).map(({ nonce, hashes }) => [nonce, hashes])).toEqual([[0, stored?.hashes]]);
  expect(await minedNonces()).toEqual([0]);
}, 90_000);

async function backInThePool(signed: Signed, service: TestService): Promise<void> {
  await expect.poll(async () => (await chain.client.getTxpoolStatus()).pending, soon).toBe(1);
  await nothingCharged(chain, signed.authorization.from);
  await chain.client.setAutomine(true);
  await chain.mine();
  await expect.poll(async () => (await buy(service, signed)).status, { timeout: 45_000 }).toBe(200);
  await chargedOnce(chain, signed);
}

test("a relayer without gas charges nothing and says so; funded, it settles the same header", async () => {
  const service = await another();
  await chain.setBalance(RELAYER.address, 0n);
  const settlement = async () => (await send(`${service.url}/status`)).body.settlement;
  const signed = await signPayment(await newPayer(chain));
  const answer = await buy(service, signed);
  expectProblem(answer, 503, "payment_pending");
  expect(answer.body.detail).toMatch(/Do not sign again; send the same header again/);
  await nothingCharged(chain, signed.authorization.from);
  expect(await relayed()).toEqual([]);
  expect(service.logged.filter((line) => line.includes('"level":40') && /has no gas/.test(line))).not.toEqual([]);
  expect(await settlement()).toMatchObject({ ok: false, address: RELAYER.address, balance_wei: "0" });

  await chain.setBalance(RELAYER.address, 10n ** 18n);
  await expect.poll(settlement, { timeout: 10_000 }).toMatchObject({ ok: true });
  expect((await buy(service, signed)).status).toBe(200);
  await chargedOnce(chain, signed);
}, 60_000);
