import type { Hex, LocalAccount } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { leaveAt, startFaultyNode, startHoldingNode } from "../../support/chain/nodes.ts";
import {
  deployEscrow,
  END_TURNS,
  type EscrowScene,
  expectOutcome,
  type Held,
  hold,
  newMerchant,
  PATIENT,
  requestedOutcomes,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { binary, hexOf } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

vi.setConfig({ testTimeout: 90_000 });
const NOTED = "WITH task AS (UPDATE escrow_task";
/** PostgreSQL finishes a waiting statement even after its client is gone. */
const CUT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND query LIKE '${NOTED}%'`;

let merchant: LocalAccount;
let held: Held;

const start = (at: { readonly url: string } = node) => stage.start(at, { ESCROW_ADDRESSES: scene.escrow.address });
const endTurns = () => withClient(stage.database.ownerUrl, (client) => client.query(END_TURNS));
const taskOf = async ({ id }: Held) =>
  (await stage.owner.query("SELECT * FROM escrow_task WHERE payment = $1", [binary(id)])).rows[0];
/** The hash of the newest transaction. */
const sentHash = async () => {
  const { rows } = await stage.owner.query("SELECT hashes[1] AS hash FROM relay ORDER BY id DESC LIMIT 1");
  return hexOf(rows[0].hash);
};
const isPending = () => expect.poll(async () => (await stage.chain.client.getTxpoolStatus()).pending, PATIENT).toBe(1);
const ended = (one: Held, wanted: string) => expect.poll(() => statusOf(scene, one), PATIENT).toBe(wanted);

const stage = await forFile(startApiStage());
const scene: EscrowScene = { chain: stage.chain, escrow: await deployEscrow(stage.chain) };
const node = await forFile(startHoldingNode(stage.chain));
let api = await start();

beforeEach(async () => {
  merchant = newMerchant();
  held = await hold(scene, merchant.address);
});

async function killAndRestart(): Promise<void> {
  await api.kill();
  await endTurns();
  api = await start();
}

/** Expects exactly one transaction, whose event carries the evaluation's hash. */
async function expectOnce(one: Held, decision: "release" | "refund"): Promise<void> {
  const done = await expectOutcome(scene, one, decision);
  const { rows } = await stage.owner.query("SELECT record FROM escrow_evaluation WHERE payment = $1", [binary(one.id)]);
  expect(done?.event?.record).toBe(hexOf(rows[0].record));
}

/** Expects the task to have its transaction, and to be final once its block is. */
async function expectNoted(one: Held): Promise<void> {
  const done = (await requestedOutcomes(scene, one)).find(({ succeeded }) => succeeded);
  await scene.chain.mine(4);
  await endTurns();
  await expect.poll(async () => (await taskOf(one)).state, PATIENT).toBe("final");
  expect(hexOf((await taskOf(one)).tx)).toBe(done?.hash);
}

describe("process killed with SIGKILL", () => {
  test("If the transaction is stored but not broadcast, the next process releases once", async () => {
    const sending = node.hold("eth_sendRawTransaction", held.buyer.address);
    await deliver(api, merchant, { ...held, ...GOOD });
    await sending.reached;
    expect([await statusOf(scene, held), (await taskOf(held)).tx]).toEqual(["held", null]);
    await killAndRestart();
    await expectOnce(held, "release");
    await expectNoted(held);
  });

  test("If the transaction is sent but not recorded, the next process refunds once", async () => {
    const sending = node.hold("eth_estimateGas", held.buyer.address);
    await deliver(api, merchant, { ...held, ...EMPTY });
    await sending.reached;
    await withClient(stage.database.ownerUrl, async (client) => {
      await client.query("BEGIN");
      await client.query("SELECT 1 FROM escrow_task WHERE payment = $1 FOR UPDATE", [binary(held.id)]);
      sending.release();
      await stage.untilBlocked(NOTED);
      await api.kill();
      await client.query(CUT);
      await client.query("ROLLBACK");
    });
    expect((await taskOf(held)).tx).toBeNull();
    await ended(held, "refunded");
    await killAndRestart();
    await expectOnce(held, "refund");
    await expectNoted(held);
  });

  test("If the transaction is mined before its receipt is read, the next process releases once", async () => {
    const sending = node.hold("eth_sendRawTransaction", held.buyer.address);
    await deliver(api, merchant, { ...held, ...GOOD });
    await sending.reached;
    // Only this transaction. Earlier ones also get their receipts read when they become final.
    const looking = node.hold("eth_getTransactionReceipt", await sentHash());
    sending.release();
    await looking.reached;
    await ended(held, "released");
    expect((await taskOf(held)).state).toBe("open");
    await killAndRestart();
    await expectOnce(held, "release");
    expect(await requestedOutcomes(scene, held)).toHaveLength(1);
    await expectNoted(held);
  });

  test("If another use of the arbiter's key has taken the nonce, the outcome is sent again", async () => {
    const { client } = stage.chain;
    await client.setAutomine(false);
    try {
      await deliver(api, merchant, { ...held, ...GOOD });
      await isPending();
      await api.kill();
      await client.dropTransaction({ hash: await sentHash() });
      await client.impersonateAccount({ address: scene.escrow.arbiter });
      await client.sendTransaction({ account: scene.escrow.arbiter, to: merchant.address, value: 1n });
    } finally {
      await client.setAutomine(true);
      await stage.chain.mine(4);
    }
    api = await start();
    const lost = "SELECT 1 FROM relay WHERE state = 'lost'";
    await expect.poll(async () => (await stage.owner.query(lost)).rowCount, PATIENT).toBe(1);
    await endTurns();
    await expectOnce(held, "release");
    await expectNoted(held);
  });
});

test("Two processes with expiring turns on one database give each payment one outcome, as first decided", async () => {
  const other = await start({ url: stage.chain.rpcUrl });
  const ending = setInterval(() => void endTurns().catch(() => undefined), 100);
  try {
    const holds: Held[] = [];
    while (holds.length < 10) holds.push(await hold(scene, merchant.address));
    const answers = await Promise.all(
      holds.flatMap((one, index) =>
        [api, other].map((side, at) => deliver(side, merchant, { ...one, ...((index + at) % 2 === 0 ? GOOD : EMPTY) })),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const [index, one] of holds.entries()) {
      const [first, second] = answers.slice(index * 2, index * 2 + 2);
      expect(second?.body.record).toBe(first?.body.record);
      await expectOnce(one, first?.body.decision as "release");
    }
  } finally {
    clearInterval(ending);
    await other.kill();
  }
});

test("A process that finds the hold already ended returns the other process's decision", async () => {
  const other = await start({ url: stage.chain.rpcUrl });
  try {
    const looking = node.hold("eth_call", held.id);
    const late = deliver(api, merchant, { ...held, ...EMPTY });
    await looking.reached;
    const first = await deliver(other, merchant, { ...held, ...GOOD });
    await ended(held, "released");
    looking.release();
    expect((await late).status).toBe(200);
    expect([(await late).body.decision, (await late).body.record]).toEqual(["release", first.body.record]);
  } finally {
    await other.kill();
  }
});

describe("escrow outcomes on an unstable chain", async () => {
  // Whatever happens to the chain, the outcome of an escrow payment is executed once.

  vi.setConfig({ testTimeout: 90_000 });

  let one: Held;
  let merchant: LocalAccount;

  const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
  const at: EscrowScene = { chain, escrow: await deployEscrow(chain) };
  const faulty = await forFile(startFaultyNode(chain));
  const rpcUrls = eachNetwork(() => faulty.url);
  const service = await forFile(startService({ chain, config: { rpcUrls, escrowAddresses: [at.escrow.address] } }));
  // anvil has the state of loaded blocks only at its head, so the finalized block must be one that it has mined.
  await chain.mine(10);

  beforeEach(async () => {
    merchant = newMerchant();
    one = await hold(at, merchant.address);
  });

  const query = (text: string, values: unknown[] = []) =>
    withClient(service.database.ownerUrl, (client) => client.query(text, values));
  const lookAgain = () => query(END_TURNS);
  const task = "SELECT state FROM escrow_task WHERE payment = $1";
  const stateOf = async () => (await query(task, [binary(one.id)])).rows[0].state;
  const reorganize = (depth: number) =>
    at.chain.client.request({ method: "anvil_reorg", params: [depth, []] } as never);

  test.each(["unheard", "heard"] as const)(
    "If the node fails at the broadcast (%s), the refund is executed once",
    async (heard) => {
      const left = leaveAt(faulty, "eth_sendRawTransaction", heard);
      const answer = await deliver(service, merchant, { ...one, ...EMPTY });
      expect(answer.body).toMatchObject({ decision: "refund", status: "pending" });
      await left;
      faulty.become(null);
      await expectOutcome(at, one, "refund");
      expect(await requestedOutcomes(at, one)).toHaveLength(1);
    },
  );

  test("A release that a reorganization removes is sent again until it is final", async () => {
    await deliver(service, merchant, { ...one, ...GOOD });
    await expectOutcome(at, one, "release");
    await expect.poll(stateOf, PATIENT).toBe("mined");
    await reorganize(1);
    expect(await statusOf(at, one)).toBe("held");
    await expectOutcome(at, one, "release");
    await at.chain.mine(8);
    await lookAgain();
    await expect.poll(stateOf, PATIENT).toBe("final");
  });

  test("If a reorganization removes the hold, the release follows once the hold is mined again", async () => {
    await deliver(service, merchant, { ...one, ...GOOD });
    await expectOutcome(at, one, "release");
    const asked = { method: "eth_getRawTransactionByHash", params: [one.transaction] } as never;
    const raw = await at.chain.client.request(asked);
    await reorganize(2);
    expect(await statusOf(at, one)).toBe("none");
    await lookAgain();
    await expect.poll(stateOf, PATIENT).toBe("open");
    await at.chain.client.sendRawTransaction({ serializedTransaction: raw as Hex });
    await expect.poll(() => statusOf(at, one), PATIENT).not.toBe("none");
    await lookAgain();
    await expectOutcome(at, one, "release");
  });
});
