import { setTimeout as sleep } from "node:timers/promises";
import { encodeFunctionData, type Hex, type LocalAccount, parseEventLogs } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { USDC_ABI, USDC_ADMINISTRATOR } from "../../../scripts/embedded/usdc.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { openOperator } from "../../support/escrow/auth-capture.ts";
import { deployEscrow, END_TURNS, PATIENT } from "../../support/escrow/contract.ts";
import { type Pays, presentedIn, signFor } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { type Answer, post } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { hexOf } from "../../support/service/database.ts";

// Holds that wait together share a transaction, but a failing one does not affect the others.

vi.setConfig({ testTimeout: 120_000 });
const BURNER = "0x00000000000000000000000000000000bad00001";
/** A higher fee than the service's, so this transaction is mined first. */
const FIRST = { maxPriorityFeePerGas: 10n ** 11n, maxFeePerGas: 2n * 10n ** 11n };

const stage = await forFile(startApiStage());
const { chain, owner } = stage;
const { client } = chain;
const contracts = { commerce: await deployEscrow(chain), "auth-capture": await openOperator(chain) };
const node = await forFile(startHoldingNode(chain));
/** The size of a full batch. While a batch is pending, the next one waits until it is full. */
const TOGETHER = 5;
const settings = {
  ESCROW_ADDRESSES: Object.values(contracts)
    .map(({ address }) => address)
    .join(","),
  BATCH_MAX: String(TOGETHER),
  BATCH_WAIT_MS: "10000",
};
let api = await stage.start(node, settings);

afterEach(() => client.setAutomine(true));

const url = () => `${api.url}/escrow/demo`;
const pending = async () => (await client.getTxpoolStatus()).pending;
/** The transactions sent since the test began, oldest first. */
const sent = async () =>
  (
    await owner.query<{ size: number; hash: Buffer; failed: number[] }>(
      "SELECT cardinality(purposes) AS size, mined_hash AS hash, failed FROM relay WHERE id > $1 ORDER BY id",
      [before],
    )
  ).rows;
const sizes = async () => (await sent()).map(({ size }) => size);
let before = "0";

interface Order {
  readonly buyer: LocalAccount;
  readonly header: string;
}

async function orders(count: number, pays: Pays): Promise<Order[]> {
  const all: Order[] = [];
  while (all.length < count) {
    const buyer = await newPayer(chain, 1_000_000n);
    all.push({ buyer, header: await signFor({ fetch }, buyer, { url: url(), pays }) });
  }
  return all;
}

const pay = ({ header }: Order): Promise<Answer> => post(url(), { "PAYMENT-SIGNATURE": header });
const cutOff = (order: Order) => pay(order).catch(() => null);

/** Sends the same header until the response is not a 503. */
async function sentAgain(order: Order): Promise<Answer> {
  for (const deadline = Date.now() + 60_000; ; await sleep(100)) {
    const answer = await pay(order);
    if (answer.status !== 503 || Date.now() > deadline) return answer;
  }
}

/** Puts the first hold in the pool, with the others in one transaction behind it. */
async function sharing([first, ...others]: readonly Order[]) {
  await client.setAutomine(false);
  const asked = [cutOff(first as Order)];
  await expect.poll(pending, PATIENT).toBe(1);
  asked.push(...others.map(cutOff));
  return asked;
}

/** The contract's events for each buyer, in order. */
async function eventsOf(made: readonly Order[], pays: Pays): Promise<string[][]> {
  const logs = await client.getLogs({ address: contracts[pays].address, fromBlock: 0n });
  const events = parseEventLogs({ abi: escrowAbi, eventName: ["Held", "Released", "Refunded"], logs });
  return made.map(({ buyer }) =>
    events.filter(({ args }) => args.payer === buyer.address).map(({ eventName }) => eventName),
  );
}

async function expectSold(made: readonly Order[], pays: Pays): Promise<void> {
  const answers = await Promise.all(made.map(sentAgain));
  expect(answers.map(({ status, text }) => (status === 200 ? 200 : text))).toEqual(made.map(() => 200));
  await expect.poll(() => eventsOf(made, pays), PATIENT).toEqual(made.map(() => ["Held", "Released"]));
  for (const { buyer } of made) expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
}

/** Delegates the buyer's account to code that validates its own signatures and burns all gas (EIP-7702). */
async function delegates({ buyer }: Order): Promise<void> {
  await client.setCode({ address: BURNER, bytecode: "0x5b5f56" });
  await client.setCode({ address: buyer.address, bytecode: `0xef0100${BURNER.slice(2)}` });
}

async function sends(from: LocalAccount["address"], to: Hex, data: Hex): Promise<void> {
  await client.impersonateAccount({ address: from });
  await client.setBalance({ address: from, value: 10n ** 18n });
  await client.sendTransaction({ account: from, to, data, gas: 300_000n, ...FIRST });
}

const movesAway = ({ buyer: { address } }: Order) =>
  sends(
    address,
    chain.network.usdc.address,
    encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [BURNER, 1_000_000n] }),
  );

const isBanned = ({ buyer: { address } }: Order) =>
  sends(
    USDC_ADMINISTRATOR,
    chain.network.usdc.address,
    encodeFunctionData({ abi: USDC_ABI, functionName: "blacklist", args: [address] }),
  );

beforeEach(async () => {
  before = (await owner.query("SELECT coalesce(max(id), 0) AS id FROM relay")).rows[0].id;
});

describe.each(["commerce", "auth-capture"] as const)("shared holds with %s", (pays) => {
  test("A payer that misbehaves after its hold is sent loses its own hold and does not affect the others", async () => {
    const made = await orders(1 + TOGETHER, pays);
    const [burner, broke, banned, ...others] = made.slice(1) as [Order, Order, Order, ...Order[]];
    const honest = [made[0] as Order, ...others];
    const asked = await sharing(made);
    await expect.poll(sizes, PATIENT).toEqual([1, TOGETHER]);
    await expect.poll(pending, PATIENT).toBe(2);
    await delegates(burner);
    await movesAway(broke);
    await isBanned(banned);
    await client.setAutomine(true);
    await chain.mine();
    const answers = await Promise.all(asked);
    expect(answers.map((answer) => answer?.status)).toEqual([200, 402, 402, 402, 200, 200]);
    await expectSold(honest, pays);
    expect(await eventsOf([burner, broke, banned], pays)).toEqual([[], [], []]);
    const [, batch] = await sent();
    expect(batch?.failed).toHaveLength(3);
    const { gasUsed, to } = await client.getTransactionReceipt({ hash: hexOf(batch?.hash as Buffer) });
    expect(to).toBe(SETTLEMENT_BATCH.address.toLowerCase());
    // Five gas limits would total 650,000 and 1,100,000.
    expect(gasUsed).toBeLessThan(pays === "commerce" ? 420_000n : 650_000n);
  });

  test("A blacklisted payer gets the reason, and no transaction is sent for it", async () => {
    const [banned] = (await orders(1, pays)) as [Order];
    await chain.blacklist(banned.buyer.address);
    const { status, text } = await pay(banned);
    expect([status, text]).toEqual([402, expect.stringContaining("blacklisted")]);
    expect(await sizes()).toEqual([]);
  });
});

describe("process killed with SIGKILL after a batch is sent", () => {
  async function killed(asked: readonly Promise<unknown>[]): Promise<void> {
    await api.kill();
    await Promise.all(asked);
    await stage.endLeases();
    await withClient(stage.database.ownerUrl, (database) => database.query(END_TURNS));
    api = await stage.start(node, settings);
  }

  test("Each payment is held once, even if a stranger submits one of the pending holds first", async () => {
    const made = await orders(1 + TOGETHER, "commerce");
    const asked = await sharing(made);
    await expect.poll(pending, PATIENT).toBeGreaterThan(1);
    await killed(asked);
    const { info, signature } = presentedIn((made[2] as Order).header);
    const { address } = contracts.commerce;
    const call = {
      abi: escrowAbi,
      functionName: "authorize",
      args: [info, info.maxAmount, address, signature],
    } as const;
    await sends("0x0000000000000000000000000000000000057a46", address, encodeFunctionData(call));
    await client.setAutomine(true);
    await chain.mine();
    await expectSold(made, "commerce");
  });
});
