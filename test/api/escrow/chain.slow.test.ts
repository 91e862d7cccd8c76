import { type Hex, type LocalAccount, parseEventLogs } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { operatorAbi } from "../../../contracts/abi.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { type Hold, leaveAt, startFaultyNode, startHoldingNode } from "../../support/chain/nodes.ts";
import { openOperator, signedFor, type WirePayment } from "../../support/escrow/auth-capture.ts";
import {
  askedOnChain,
  deployEscrow,
  END_TURNS,
  type EscrowScene,
  expectOutcome,
  type Held,
  hold,
  newMerchant,
  PATIENT,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { encodeHeader } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { type Answer, post } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

describe("outcomes on a chain that changes", async () => {
  // Whatever becomes of the chain, the outcome of an escrow payment gets there once.

  vi.setConfig({ testTimeout: 90_000 });

  let one: Held;
  let merchant: LocalAccount;

  const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
  const at: EscrowScene = { chain, escrow: await deployEscrow(chain) };
  const faulty = await forFile(startFaultyNode(chain));
  const rpcUrls = eachNetwork(() => faulty.url);
  const service = await forFile(startService({ chain, config: { rpcUrls, escrowAddresses: [at.escrow.address] } }));
  // anvil knows the state of loaded blocks only at its head: let the finalized one be one that it has mined.
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

  test.each(["unheard", "heard"] as const)("the node goes away at the broadcast, which it has %s", async (heard) => {
    const left = leaveAt(faulty, "eth_sendRawTransaction", heard);
    const answer = await deliver(service, merchant, { ...one, ...EMPTY });
    expect(answer.body).toMatchObject({ decision: "refund", status: "pending" });
    await left;
    faulty.become(null);
    await expectOutcome(at, one, "refund");
    expect(await askedOnChain(at, one)).toHaveLength(1);
  });

  test("a reorganization takes the release back: it is sent again, until it is final", async () => {
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

  test("a reorganization takes the hold back too: it is released when it comes again", async () => {
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

describe("kills of a sale", async () => {
  vi.setConfig({ testTimeout: 120_000 });

  const stage = await forFile(startApiStage());
  const { chain } = stage;
  const operator = await openOperator(chain);
  const node = await forFile(startHoldingNode(chain));
  // Holds that share transactions have tests of their own.
  const start = () => stage.start(node, { ESCROW_ADDRESSES: operator.address, BATCH_MAX: "1" });
  let api = await start();

  let buyer: LocalAccount;
  let payment: WirePayment;
  const pay = (): Promise<Answer> => post(`${api.url}/escrow/demo`, { "PAYMENT-SIGNATURE": encodeHeader(payment) });

  beforeEach(async () => {
    buyer = await newPayer(chain, 1_000_000n);
    payment = await signedFor(`${api.url}/escrow/demo`, buyer);
  });

  async function killAndRestart(): Promise<void> {
    await api.kill();
    await stage.endLeases();
    await withClient(stage.database.ownerUrl, (client) => client.query(END_TURNS));
    api = await start();
  }

  /** Where the process stands when it is killed, as the node sees it: with a call that carries the buyer's address. */
  const calls = (method: string) => node.hold(method, buyer.address);
  const second = async (method: string): Promise<Hold> => {
    const first = calls(method);
    await first.reached;
    const next = calls(method);
    first.release();
    return next;
  };

  /** What the operator's log has of the buyer. */
  async function eventsOfBuyer(): Promise<readonly string[]> {
    const logs = await chain.client.getLogs({ address: operator.address, fromBlock: 0n });
    return parseEventLogs({ abi: operatorAbi, logs })
      .filter(({ args }) => "payer" in args && args.payer === buyer.address)
      .map(({ eventName }) => eventName);
  }

  describe("a process killed with SIGKILL sells once, for one hold and one release", () => {
    test.each([
      ["before it sends the hold", async () => calls("eth_estimateGas")],
      ["when it has stored the hold but not broadcast it", async () => calls("eth_sendRawTransaction")],
      ["when it has stored the release but not broadcast it", () => second("eth_sendRawTransaction")],
    ])("%s", async (_, trap) => {
      const trapped = trap();
      const cut = pay().catch(() => null);
      await (await trapped).reached;
      await killAndRestart();
      await cut;
      const answer = { latest: await pay() };
      const served = async () => {
        if (answer.latest.status === 503) answer.latest = await pay();
        return answer.latest.status;
      };
      await expect.poll(served, PATIENT).toBe(200);
      await expect.poll(eventsOfBuyer, PATIENT).toEqual(["Held", "Released"]);
      expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
      const again = await pay();
      expect([again.status, again.headers.get("x-idempotent-replay"), again.text]).toEqual([
        200,
        "true",
        answer.latest.text,
      ]);
      expect(await eventsOfBuyer()).toEqual(["Held", "Released"]);
    });
  });
});
