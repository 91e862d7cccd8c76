import type { Hex, LocalAccount } from "viem";
import { beforeEach, expect, test, vi } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { leaveAt, startFaultyNode } from "../../support/chain/nodes.ts";
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
import { forFile } from "../../support/for-file.ts";
import { binary, hexOf } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

// Whatever becomes of the chain, the outcome of an escrow payment gets there once.

vi.setConfig({ testTimeout: 90_000 });

let one: Held;
let merchant: LocalAccount;

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
const at: EscrowScene = { chain, escrow: await deployEscrow(chain) };
const faulty = await forFile(startFaultyNode(chain));
const rpcUrls = { "eip155:8453": faulty.url, "eip155:84532": faulty.url };
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
const newest = "SELECT hashes FROM relay ORDER BY id DESC LIMIT 1";
const hashes = async (): Promise<readonly Hex[]> => (await query(newest)).rows[0]?.hashes.map(hexOf) ?? [];
const reorganize = (depth: number) => at.chain.client.request({ method: "anvil_reorg", params: [depth, []] } as never);

test("a transaction that is stuck because the market asks more is replaced at a higher fee", async () => {
  const { client } = at.chain;
  const before = await hashes();
  await client.setAutomine(false);
  await deliver(service, merchant, { ...one, ...GOOD });
  await expect.poll(hashes, PATIENT).not.toEqual(before);
  const [first = "0x"] = await hashes();
  const feeOf = async (hash: Hex) =>
    Number((await client.getTransaction({ hash }).catch(() => null))?.maxFeePerGas ?? 0n);
  const stuck = await feeOf(first);
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: BigInt(stuck) * 2n });
  await at.chain.mine();
  await expect.poll(hashes, PATIENT).toHaveLength(2);
  const [, second = "0x"] = await hashes();
  await expect.poll(() => feeOf(second), PATIENT).toBeGreaterThan(stuck * 1.1);
  await client.setAutomine(true);
  await at.chain.mine();
  await expectOutcome(at, one, "release");
  expect((await askedOnChain(at, one)).map(({ hash }) => hash)).toEqual([second]);
});

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
