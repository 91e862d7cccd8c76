import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { grantRoles, type Postgres, startPostgres, withClient } from "../../../scripts/embedded/postgres.ts";
import { migrate } from "../../../scripts/migrate.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { type HoldingNode, startHoldingNode } from "../../support/chain/nodes.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, startApiProcess } from "../../support/service/api-process.ts";
import { binary, eachPayment } from "../../support/service/database.ts";

// The same naming as in `stack.ts`, so that a later run removes the folder of a killed run.
const folder = mkdtempSync(join(tmpdir(), `trust-test-${process.pid}-`));

let port: number;
let postgres: Postgres;
let chain: TestChain;
let sepolia: TestChain;
let node: HoldingNode;
let api: ApiProcess;
let signed: Signed;

/** Starts a PostgreSQL for this file only, as durable as in production. The test run's shared PostgreSQL stays up. */
const start = async () => {
  postgres = await startPostgres({ directory: join(folder, "postgres"), port });
};

beforeAll(async () => {
  chmodSync(folder, 0o711);
  port = await freePort();
  [chain, sepolia] = await Promise.all([startTestChain(), startTestChain({ network: "eip155:84532" }), start()]);
  await migrate(postgres.ownerUrl);
  await grantRoles(postgres.ownerUrl);
  await fundRelayer(chain);
  node = await startHoldingNode(chain);
  const { ownerUrl, apiUrl, indexerUrl } = postgres;
  api = await startApiProcess({
    database: { ownerUrl, apiUrl, indexerUrl },
    baseRpcUrl: node.url,
    baseSepoliaRpcUrl: sepolia.rpcUrl,
    env: { BATCH_MAX: "1" },
  });
});
beforeEach(async () => {
  // A failed test may have left PostgreSQL stopped.
  if (!postgres.process.running()) await start();
  signed = await signPayment(await newPayer(chain));
});
afterAll(async () => {
  await api?.kill();
  node?.stop();
  await Promise.all([chain?.stop(), sepolia?.stop(), postgres?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const pay = (): Promise<Answer> => post(`${api.url}/test/basic`, v2(signed));
const ask = <T>(text: string, values: unknown[] = []) =>
  withClient(postgres.ownerUrl, async (client) => (await client.query<T & object>(text, values)).rows);
const nonce = () => binary(signed.authorization.nonce);
const state = async () => (await ask<{ state: string }>("SELECT state FROM payment WHERE nonce = $1", [nonce()]))[0];
const certificates = async () => (await ask("SELECT 1 FROM certificate WHERE nonce = $1", [nonce()])).length;

type Ending = readonly [how: string, signal: NodeJS.Signals];
const ENDINGS: readonly Ending[] = [
  ["shut down fast", "SIGINT"],
  ["killed", "SIGKILL"],
];

async function end(signal: NodeJS.Signals): Promise<void> {
  const sessions = await ask<{ pid: number }>("SELECT pid FROM pg_stat_activity");
  process.kill(postgres.process.pid, signal);
  // Without the parent, a session continues until it notices. A fast shutdown waits for its sessions.
  if (signal === "SIGKILL") for (const { pid } of sessions) killIfThere(pid);
  await postgres.process.ended;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The session has already ended.
  }
}

/** Sends the same header until it gets a result. Every earlier answer must be 503. */
async function sentAgain(): Promise<Answer> {
  for (const deadline = Date.now() + 30_000; ; await sleep(100)) {
    // Ends the leases now instead of after 30 seconds.
    await ask(eachPayment("lease_until = '-infinity'", "lease_until > now()"));
    const answer = await pay();
    if (answer.status !== 503 || Date.now() > deadline) return answer;
    expectProblem(answer, 503, "payment_pending");
  }
}

async function expectBoughtOnce(answer: Answer): Promise<void> {
  expect({ status: answer.status, text: answer.text, log: api.output() }).toMatchObject({ status: 200 });
  await chargedOnce(chain, signed);
  expect(await certificates()).toBe(1);
  const replay = await pay();
  expect([replay.status, replay.text, replay.headers.get("x-idempotent-replay")]).toEqual([200, answer.text, "true"]);
  // The API process is still the original one.
  expect((await send(`${api.url}/health`)).status).toBe(200);
  process.kill(api.pid, 0);
}

describe.each(ENDINGS)("PostgreSQL %s and started again", (_, signal) => {
  test.each([
    ["before the settlement is signed", "eth_estimateGas", "settling"],
    ["after the settlement is mined but before it is looked up", "eth_getLogs", "settling"],
  ])("A request gets its result when PostgreSQL restarts %s", async (_, method, expected) => {
    const held = node.hold(method, signed.authorization.from);
    const answer = pay();
    await held.reached;
    expect(await state()).toEqual({ state: expected });
    await end(signal);
    await start();
    expect(await state()).toEqual({ state: expected });
    held.release();
    await expectBoughtOnce(await answer);
  });

  test("A request whose settlement cannot be stored gets 503, and the same header gets its result after the restart", async () => {
    const held = node.hold("eth_getLogs", signed.authorization.from);
    const answer = pay();
    await held.reached;
    await end(signal);
    held.release();
    expectProblem(await answer, 503, "payment_pending");
    await chargedOnce(chain, signed);
    expectProblem(await pay(), 503, "payment_pending");
    await start();
    await expectBoughtOnce(await sentAgain());
  });
});

test("A payment that arrives while PostgreSQL is down gets 503, is not charged, and succeeds once PostgreSQL is back", async () => {
  await end("SIGINT");
  expectProblem(await pay(), 503, "payment_pending");
  const read = await send(`${api.url}/verify?wallet=${signed.authorization.from}`);
  expectProblem(read, 503, "not_available");
  expect([read.headers.get("retry-after"), api.output().includes("a request failed")]).toEqual(["2", false]);
  expect((await send(`${api.url}/inspect`)).status).toBe(200);
  expect((await send(`${api.url}/status`)).body).toMatchObject({ ok: false, database: { ok: false } });
  await nothingCharged(chain, signed.authorization.from);
  await start();
  expect(await state()).toBeUndefined();
  await expectBoughtOnce(await pay());
  const status = async () => (await send(`${api.url}/status`)).body;
  await expect.poll(status, { timeout: 10_000 }).toMatchObject({ database: { ok: true } });
});
