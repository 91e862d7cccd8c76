import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { SESSION_PRICES } from "../../../api/certificates/kinds/kind.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { type ApiProcess, startApiStage } from "../../support/service/api-process.ts";
import { binary, endBlocked } from "../../support/service/database.ts";

vi.setConfig({ testTimeout: 120_000 });
const PATIENT = { timeout: 30_000, interval: 10 };

let payer: LocalAccount;
let signed: Signed;

const pay = (at: ApiProcess, payment: Signed = signed): Promise<Answer> => post(`${at.url}/test/basic`, v2(payment));
const isReplay = (answer: Answer | undefined) => answer?.headers.get("x-idempotent-replay") === "true";

const stage = await forFile(startApiStage());
const { chain } = stage;
const node = await forFile(startHoldingNode(chain));
let api = await stage.start(node, { BATCH_MAX: "1" });

beforeEach(async () => {
  payer = await newPayer(chain);
  signed = await signPayment(payer);
});

const ofPayment = (text: string) => stage.owner.query(text, [binary(signed.authorization.nonce)]);
const state = async () => (await ofPayment("SELECT state FROM payment WHERE nonce = $1")).rows[0]?.state;
const certificates = async () => (await ofPayment("SELECT 1 FROM certificate WHERE nonce = $1")).rowCount;

/** Sends the payment and waits until the process reaches the given point, still without a response. */
async function reaches(at: Promise<unknown>, answering = pay(api)): Promise<void> {
  const early = answering.then((answer) =>
    Promise.reject(new Error(`answered too early: ${answer.status} ${answer.text}`)),
  );
  // The kill closes this connection.
  early.catch(() => undefined);
  await Promise.race([at, early]);
}

async function killAndRestart(): Promise<void> {
  await api.kill();
  await stage.endLeases();
  api = await stage.start(node, { BATCH_MAX: "1" });
}

/** Sends the same header until the response is not a 503. */
async function sentAgain(sending = () => pay(api)): Promise<Answer> {
  for (const deadline = Date.now() + 60_000; ; await sleep(100)) {
    const answer = await sending();
    if (answer.status !== 503 || Date.now() > deadline) return answer;
  }
}

async function expectBoughtOnce(answer: Answer): Promise<void> {
  expect({ status: answer.status, text: answer.text, log: api.output() }).toMatchObject({ status: 200 });
  await chargedOnce(chain, signed);
  expect(await certificates()).toBe(1);
  const again = await pay(api);
  expect([again.status, again.text, isReplay(again)]).toEqual([200, answer.text, true]);
  await chargedOnce(chain, signed);
}

describe("process killed with SIGKILL", () => {
  test.each([
    ["while it simulates the transfer", "eth_call", "received"],
    ["when it is about to sign the settlement", "eth_estimateGas", "settling"],
    ["when it has stored the settlement but not broadcast it", "eth_sendRawTransaction", "settling"],
  ])("A process killed before submitting, %s, charges once and returns the result", async (_, method, expected) => {
    await reaches(node.hold(method, payer.address).reached);
    expect([await state(), await settlements(chain, payer.address)]).toEqual([expected, []]);
    await killAndRestart();
    await expectBoughtOnce(await sentAgain());
  });

  test("A process killed after the broadcast but before a block does not broadcast again and charges once", async () => {
    const pending = async () => (await chain.client.getTxpoolStatus()).pending;
    await chain.client.setAutomine(false);
    try {
      await reaches(expect.poll(pending, PATIENT).toBe(1));
      expect(await state()).toBe("settling");
      const waiting = node.hold("eth_getTransactionReceipt", "0x");
      await killAndRestart();
      const again = sentAgain();
      await waiting.reached;
      expect([await state(), await pending()]).toEqual(["settling", 1]);
      waiting.release();
      await chain.client.setAutomine(true);
      await chain.mine();
      await expectBoughtOnce(await again);
    } finally {
      await chain.client.setAutomine(true);
    }
  });

  test("A process killed after the settlement is mined but before it has looked still returns the result", async () => {
    await reaches(node.hold("eth_getLogs", payer.address).reached);
    await expect.poll(() => settlements(chain, payer.address), PATIENT).toHaveLength(1);
    expect(await state()).toBe("settling");
    await killAndRestart();
    await expectBoughtOnce(await sentAgain());
  });

  test("A process killed while it stores the settlement of a session opens the session once", async () => {
    signed = await signPayment(payer, { value: SESSION_PRICES.entry });
    const start = () => post(`${api.url}/test/scam/start`, v2(signed));
    const looking = node.hold("eth_getLogs", payer.address);
    await reaches(looking.reached, start());
    await withClient(stage.database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("SELECT 1 FROM payment WHERE nonce = $1 FOR UPDATE", [binary(signed.authorization.nonce)]);
      looking.release();
      await stage.untilBlocked("UPDATE payment SET state");
      await api.kill();
      await client.query("ROLLBACK");
    });
    await killAndRestart();
    const answer = await sentAgain(start);
    expect({ status: answer.status, text: answer.text, log: api.output() }).toMatchObject({ status: 200 });
    await chargedOnce(chain, signed);
    expect((await ofPayment("SELECT 1 FROM test_session WHERE nonce = $1")).rowCount).toBe(1);
    const again = await start();
    expect([again.status, isReplay(again)]).toEqual([200, true]);
  });

  test("A process killed after settling but before storing the result still returns it", async () => {
    await withClient(stage.database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("LOCK TABLE certificate IN EXCLUSIVE MODE");
      await reaches(stage.untilBlocked("INSERT INTO certificate"));
      expect([await state(), await certificates()]).toEqual(["settling", 0]);
      await api.kill();
      await endBlocked(stage.database, "INSERT INTO certificate");
      await client.query("ROLLBACK");
    });
    await killAndRestart();
    await expectBoughtOnce(await sentAgain());
  });
});

test("A process that slept through its lease changes nothing when it wakes, and responds like its successor", async () => {
  const looking = node.hold("eth_getLogs", payer.address);
  const asleep = api;
  const late = pay(asleep);
  await looking.reached;
  asleep.freeze();
  try {
    await stage.endLeases();
    api = await stage.start(node, { BATCH_MAX: "1" });
    const answer = await sentAgain();
    asleep.thaw();
    looking.release();
    const woken = await late;
    expect([woken.status, woken.text, isReplay(woken)]).toEqual([200, answer.text, true]);
    await expectBoughtOnce(answer);
  } finally {
    await asleep.kill();
  }
});
