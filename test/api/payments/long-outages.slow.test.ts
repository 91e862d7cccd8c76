import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { type FaultyNode, leaveAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { eventually } from "../../support/eventually.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { say, startFacilitator, type TestFacilitator } from "../../support/payments/facilitator.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { age } from "../../support/service/database.ts";
import { ALONE, startService, type TestService, type TestServicePlan } from "../../support/service/service.ts";

/**
 * A minute, of which 26 s are real, longer than a request waits for its facilitator and for the chain. The others pass by
 * the database's clock, by which leases end, when that wait is over.
 */
const MINUTE = { realMs: 26_000, agedAtMs: 22_000, agedSeconds: 34 };
const PATIENCE_MS = 2_000;
const LIMIT = 120_000;
/** Answered without the chain: what we have recorded, and what we are. */
const FREE = ["/health", "/inspect", "/.well-known/jwks.json", "/"];

let chain: TestChain;
const payers: LocalAccount[] = [];
const nodes: FaultyNode[] = [];
const facilitators: TestFacilitator[] = [];
const services: TestService[] = [];

beforeAll(async () => {
  chain = await startTestChain();
  while (payers.length < 8) payers.push(await newPayer(chain));
});
afterAll(async () => {
  for (const facilitator of facilitators) facilitator.stop();
  for (const node of nodes) node.become(null);
  await Promise.all(services.map((service) => service.stop()));
  for (const node of nodes) node.stop();
  await chain?.stop();
});

/** An in-process facilitator with a key of its own: each service here has its own journal of what it relays. */
async function inProcess() {
  const privateKey = generatePrivateKey();
  await chain.setBalance(privateKeyToAccount(privateKey).address, 10n ** 20n);
  return { privateKey };
}

async function begin(config: NonNullable<TestServicePlan["config"]>): Promise<TestService> {
  const service = await startService({ chain, config: { ...ALONE, ...config }, patienceMs: PATIENCE_MS });
  services.push(service);
  return service;
}

/** Ends a minute after `since`. */
async function minuteOf({ database }: TestService, since: number): Promise<void> {
  await sleep(since + MINUTE.agedAtMs - Date.now());
  await age(database, MINUTE.agedSeconds);
  await sleep(since + MINUTE.realMs - Date.now());
}

const nextPayer = () => payers.pop() as LocalAccount;
const pay = (service: TestService, signed: Signed): Promise<Answer> => post(`${service.url}/test/basic`, v2(signed));

/** What the client of a published payment does: the same header again, at the pace that it is told. */
async function retried(service: TestService, signed: Signed): Promise<{ answer: Answer; after: readonly Answer[] }> {
  const after: Answer[] = [];
  for (const deadline = Date.now() + 90_000; ; await sleep(1_000)) {
    const answer = await pay(service, signed);
    if (answer.status !== 503 || Date.now() > deadline) return { answer, after };
    expectProblem(answer, 503, "payment_pending");
    after.push(answer);
  }
}

async function expectBoughtOnce(service: TestService, signed: Signed, answer: Answer): Promise<void> {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  await chargedOnce(chain, signed);
  const wallet = signed.authorization.from;
  const { body } = await send(`${service.url}/verify?wallet=${wallet}`);
  expect(body).toMatchObject({ verified: true, certs: [{ id: answer.body.id }] });
  const replay = await pay(service, signed);
  expect([replay.text, replay.headers.get("x-idempotent-replay")]).toEqual([answer.text, "true"]);
}

/** Asks for everything that is free, until the minute is over. */
async function expectFreeReads(service: TestService, certificate: Answer, minute: Promise<void>): Promise<void> {
  const { cert_url, badge_url, wallet } = certificate.body;
  const own = [...FREE, `/verify?wallet=${wallet}`].map((path) => `${service.url}${path}`);
  let isOver = false;
  const over = minute.then(() => {
    isOver = true;
  });
  let rounds = 0;
  for (; !isOver; await sleep(2_000), rounds++) {
    for (const url of [...own, String(cert_url), String(badge_url)])
      expect([url, (await send(url)).status]).toEqual([url, 200]);
    const { body } = await send(`${service.url}/status`);
    expect(body).toMatchObject({ ok: false, database: { ok: true }, chains: [{ ok: false }, { ok: false }] });
  }
  await over;
  expect(rounds).toBeGreaterThan(3);
}

test.concurrent.each([
  ["as the settlement is about to be signed", "eth_estimateGas", "unheard", 0],
  ["as the settlement is about to be broadcast", "eth_sendRawTransaction", "unheard", 0],
  ["once it has taken the settlement, its answer included", "eth_sendRawTransaction", "heard", 1],
] as const)(
  "a node that is down for a minute %s: 503, free reads answer, and the retry gets the result of one charge",
  async (...[_, method, heard, charges]) => {
    const node = await startFaultyNode(chain);
    nodes.push(node);
    const rpcUrls = { "eip155:8453": node.url, "eip155:84532": node.url };
    const service = await begin({ rpcUrls, facilitator: await inProcess() });
    const [before, during] = [nextPayer(), nextPayer()];
    const known = await pay(service, await signPayment(before));
    expect(known.status).toBe(200);

    const signed = await signPayment(during);
    const left = leaveAt(node, method, heard);
    const retrying = retried(service, signed);
    await expectFreeReads(service, known, minuteOf(service, await left));
    if (charges === 0) await nothingCharged(chain, during);
    else await chargedOnce(chain, signed);
    node.become(null);
    const { answer, after } = await retrying;
    expect(after.length).toBeGreaterThan(0);
    await expectBoughtOnce(service, signed, answer);
  },
  LIMIT,
);

test.concurrent(
  "a facilitator that is silent for a minute and then broadcasts: a client that kept asking is charged once and gets the result",
  async () => {
    const { facilitator, service, signed } = await silence();
    const { answer, after } = await retried(service, signed);
    expect(after.length).toBeGreaterThan(0);
    expect(facilitator.handed.get(signed.authorization.nonce)).toBeGreaterThan(1);
    await expectBoughtOnce(service, signed, answer);
  },
  LIMIT,
);

test.concurrent(
  "a facilitator that is silent for a minute and then broadcasts: a client that gave up has the certificate all the same",
  async () => {
    const { facilitator, service, signed } = await silence();
    const impatient = AbortSignal.timeout(5_000);
    const init = { method: "POST", headers: v2(signed), signal: impatient };
    await expect(send(`${service.url}/test/basic`, init)).rejects.toThrow(/abort/i);
    await nothingCharged(chain, signed.authorization.from);
    const url = `${service.url}/verify?wallet=${signed.authorization.from}`;
    const verified = async () => (await send(url)).body.verified;
    await eventually(verified, true, 60_000);
    expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);
    await expectBoughtOnce(service, signed, await pay(service, signed));
  },
  LIMIT,
);

/** A payment to a facilitator that says nothing for a minute, long after our side has hung up, and broadcasts then. */
async function silence() {
  const facilitator = await startFacilitator(chain);
  facilitators.push(facilitator);
  const service = await begin({ facilitator: { remote: facilitator.url } });
  const signed = await signPayment(nextPayer());
  facilitator.treat(signed, async (given, answer) => {
    await minuteOf(service, Date.now());
    await settleAtLast(facilitator, given);
    say(answer, 200, { success: true });
  });
  return { facilitator, service, signed };
}

/** Facilitators of this file share a key and may broadcast in the same moment: of two with one nonce, one tries again. */
async function settleAtLast(facilitator: TestFacilitator, given: Parameters<TestFacilitator["settle"]>[0]) {
  for (let attempt = 1; attempt <= 10; attempt++) {
    const settled = await facilitator.settle(given).then(
      () => true,
      () => false,
    );
    if (settled) return;
    await sleep(100 * attempt);
  }
}
