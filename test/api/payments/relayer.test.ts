import { bytesToHex, type Hex } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { blocksFrom } from "../../support/chain/blocks.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { slowWallet } from "../../support/payments/wallets.ts";
import { freshDatabase, type TestDatabase } from "../../support/service/database.ts";
import { RELAYER, startService, type TestService, type TestServicePlan } from "../../support/service/service.ts";

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

/** Starts another process of the same installation, with the same database, chain, and keys. */
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
  /** The number of payments that it settles. */
  readonly purposes: number;
}

/** Returns the stored transactions by nonce. */
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

/** Returns the nonces of the relayer's transactions in block order. */
async function minedNonces(relayer: string = RELAYER.address): Promise<number[]> {
  const blocks = await blocksFrom(chain, 0);
  return blocks.flatMap(({ transactions }) =>
    transactions.filter(({ from }) => from.toLowerCase() === relayer.toLowerCase()).map(({ nonce }) => nonce),
  );
}

/** Selects the sessions that wait for an advisory lock of this database. */
const WAITING = `SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`;

test("A nonce that became final while a process waited for the lock is not used again", async () => {
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

test("A relayer without gas charges nothing and reports the cause, and once funded it settles the same header", async () => {
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

describe("More wallets with code than slots", async () => {
  const chain = await forFile(startTestChain());
  const database = await freshDatabase();
  const service = await forFile(startService({ chain, database }));
  const buy = (signed: Signed) => post(`${service.url}/test/basic`, v2(signed));

  test("A payment without a slot gets 503 and stays received, and the same header settles once a slot is free", async () => {
    const signed = await Promise.all(
      Array.from({ length: 7 }, async () => {
        const payer = await newPayer(chain);
        await chain.client.setCode({ address: payer.address, bytecode: slowWallet(1) });
        return signPayment(payer);
      }),
    );
    await chain.client.setAutomine(false);
    const answers = signed.map(buy);
    const first = Promise.all(answers);
    first.catch(() => undefined);
    const early: Answer[] = [];
    for (const answer of answers) void answer.then((one) => early.push(one));
    await expect.poll(() => early.length, { timeout: 30_000 }).toBe(3);
    for (const answer of early) {
      expectProblem(answer, 503, "payment_pending");
      expect(answer.body.detail).toMatch(/was not sent, and nothing was charged, because .* Do not sign again/);
    }
    const states = await withClient(database.ownerUrl, (client) =>
      client.query(
        "SELECT state, lease_token, encrypted_signature, count(*)::int FROM payment GROUP BY 1, 2, 3 HAVING state = 'received'",
      ),
    );
    expect(states.rows).toEqual([{ state: "received", lease_token: null, encrypted_signature: null, count: 3 }]);
    await chain.client.setAutomine(true);
    await chain.mine();
    expect((await first).filter(({ status }) => status === 200).length).toBe(4);
    const again = await Promise.all(signed.map(buy));
    expect(again.map(({ status }) => status)).toEqual(signed.map(() => 200));
    for (const one of signed) await chargedOnce(chain, one);
  }, 90_000);
});
