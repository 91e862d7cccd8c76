import pg from "pg";
import { type Address, type Hex, parseAbiItem } from "viem";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { readContracts } from "../../api/escrow/contracts-chain.ts";
import { createEscrowIndex, type EscrowIndex } from "../../api/escrow/index-store.ts";
import { type ActivityIndex, createActivityIndex } from "../../api/platform/index/activity.ts";
import { MAIN_NETWORK } from "../../api/platform/networks.ts";
import { ignoredOf } from "../../api/score/index.ts";
import { operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { connectChain } from "../../indexer/chain.ts";
import { readOperators } from "../../indexer/operators.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { startTestChain, type TestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { refuse, replyTo } from "../support/chain/rpc.ts";
import { openOperator, reclaim } from "../support/escrow/auth-capture.ts";
import { deployEscrow, type Held, hold, newMerchant, type TestEscrow } from "../support/escrow/contract.ts";
import { type Launched, launchIndexerOf } from "../support/indexer/launched.ts";
import { freshDatabase } from "../support/service/database.ts";
import { waitUntil } from "../support/wait-until.ts";
import { ESCROW_VIEWS } from "./escrow-record.ts";
import { SERVICE } from "./history.ts";

// One chain with an operator and a stranger's operator, whose payments go through the same collector.

vi.setConfig({ testTimeout: 90_000, hookTimeout: 240_000 });

const RECORD: Hex = `0x${"ab".repeat(32)}`;
/** The account that sends these tests' holds. It is also an operator of base/commerce-payments itself. */
const STRANGER = devAccount(2).address;

let chain: TestChain;
let operator: TestEscrow;
let index: EscrowIndex;
let activity: ActivityIndex;
let reader: pg.Pool;
let launched: Launched;
let released: Held;
let refunded: Held;
let reclaimed: Held;
let others: Held;
const merchant = newMerchant().address.toLowerCase() as Address;
const other = newMerchant().address.toLowerCase() as Address;
const lower = (address: Address) => address.toLowerCase() as Address;

const end = async (held: Held, functionName: "release" | "refund") => {
  const call = { address: operator.address, abi: operatorAbi, functionName, args: [held.info, RECORD, "0x"] } as const;
  const hash = await chain.client.writeContract({ ...call, account: operator.arbiter });
  expect((await chain.client.waitForTransactionReceipt({ hash })).status).toBe("success");
};

async function caughtUp(): Promise<void> {
  const head = Number(await chain.client.getBlockNumber());
  const there = await waitUntil(async () => (await activity.position())?.block === head, 60_000);
  if (!there) throw new Error(`The index did not reach block ${head}: ${JSON.stringify(await activity.position())}`);
}

const statusOf = async ({ id }: Held) =>
  (await reader.query("SELECT status FROM live.escrow_payment WHERE id = $1", [id])).rows[0]?.status ?? "absent";

/** The account's own payments and the number of its counterparties. */
async function met(account: Address) {
  const now = new Date(Number((await chain.client.getBlock()).timestamp) * 1000);
  const found = await activity.activity(lower(account), now);
  return [found?.settledPayments, found?.distinctCounterparties];
}

beforeAll(async () => {
  chain = await startTestChain();
  const database = await freshDatabase();
  reader = new pg.Pool({ connectionString: database.apiUrl, max: 4 });
  index = createEscrowIndex(reader, { viewsSchema: "live" });
  activity = createActivityIndex(reader, ESCROW_VIEWS);
  operator = await openOperator(chain);
  await chain.client.impersonateAccount({ address: operator.arbiter });
  const scene = { chain, escrow: operator };
  const soon = Number((await chain.client.getBlock()).timestamp) + 3_600;
  [released, refunded] = [await hold(scene, merchant), await hold(scene, merchant)];
  reclaimed = await hold(scene, merchant, { authorizationExpiry: soon });
  const custody = lower(COMMERCE_PAYMENTS.escrow);
  others = await hold({ chain, escrow: { ...operator, address: custody } }, other, { operator: STRANGER });
  await end(released, "release");
  launched = launchIndexerOf({ chain, database, escrows: [operator], env: { START_BLOCK: "0", INDEX_SCOPE: "full" } });
  await launched.untilLogged("index ready");
  await end(refunded, "refund");
  await chain.increaseTime(3_700);
  await reclaim(chain, reclaimed);
  await caughtUp();
});

afterAll(async () => {
  launched?.closeInput();
  await Promise.all([launched?.ended, reader?.end()]);
  await chain?.stop();
});

test("An operator's payments are followed like an escrow's, including one that its payer reclaimed", async () => {
  expect([await statusOf(released), await statusOf(refunded), await statusOf(reclaimed)]).toEqual([
    "released",
    "refunded",
    "refunded",
  ]);
  expect(await statusOf(others)).toBe("absent");
  expect(await index.overdue(2 ** 40, 10)).toEqual([]);
});

test("Its fees are paid immediately, so it owes nothing", async () => {
  const balances = { held: 0n, owed: 0n, fees: 10_000n, withdrawn: 0n };
  expect(await index.balances(operator.address)).toEqual(balances);
});

test("A hold is one payment to the merchant, and the collector and the custody have not met its payer", async () => {
  for (const { buyer } of [released, refunded, reclaimed]) expect(await met(buyer.address)).toEqual([1, 1]);
  expect(await met(merchant)).toEqual([0, 3]);
  expect(await met(COMMERCE_PAYMENTS.escrow)).toEqual([0, 0]);
});

test("A payment that the collector takes for a stranger remains a payment to the collector", async () => {
  expect(await met(others.buyer.address)).toEqual([1, 1]);
  expect(await met(COMMERCE_PAYMENTS.collector)).toEqual([0, 1]);
  expect(await met(other)).toEqual([0, 0]);
});

test("The score's look-ups ignore the custody's payouts for the operator, as the index does", async () => {
  const contracts = await readContracts(chain.client, MAIN_NETWORK, [lower(operator.address)]);
  const ignored = ignoredOf({ payTo: SERVICE, ownAddresses: [] }, contracts);
  const [{ store } = { store: SERVICE }] = await readOperators(chain.client, [lower(operator.address)]);
  expect(ignored).toEqual([SERVICE, lower(operator.address), store]);
  const paidOut = await chain.client.getLogs({
    address: chain.network.usdc.address,
    event: parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)"),
    args: { from: store },
    fromBlock: 0n,
  });
  expect(paidOut.map(({ args }) => args.to && lower(args.to))).toEqual(
    expect.arrayContaining([merchant, lower(refunded.info.payer), lower(reclaimed.info.payer)]),
  );
});

test("A node that fails, or that does not have the contract yet, never turns an operator into an escrow", async () => {
  const node = await startFaultyNode(chain);
  onTestFinished(node.stop);
  const { client } = chain;
  const escrow = await deployEscrow(chain);
  const found = (at: Address) => readOperators(connectChain(node.url), [at]);
  node.become(async (call, pass) =>
    call.method === "eth_call" ? refuse(call, -32_603, "Internal error") : pass(call),
  );
  await expect(found(operator.address)).rejects.toThrow();
  await expect(found(escrow.address)).rejects.toThrow();
  node.become(null);
  expect(await found(operator.address)).toMatchObject([{ address: operator.address }]);
  expect(await found(escrow.address)).toEqual([]);
  expect(await client.getCode({ address: STRANGER })).toBeUndefined();
  await expect(found(STRANGER)).rejects.toThrow('returned no data ("0x")');
  node.become(async (call, pass) => (call.method === "eth_call" ? replyTo(call, "0x") : pass(call)));
  await expect(found(operator.address)).rejects.toThrow('returned no data ("0x")');
});
