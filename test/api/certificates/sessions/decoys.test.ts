import type { Address, LocalAccount } from "viem";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { LEAST_REFUND, REFUNDS_A_DAY } from "../../../../api/certificates/decoys/refund.ts";
import { eachNetwork } from "../../../../api/platform/networks.ts";
import { devAccount } from "../../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode } from "../../../support/chain/nodes.ts";
import { forFile } from "../../../support/for-file.ts";
import { newPayer } from "../../../support/payments/signing.ts";
import { binary } from "../../../support/service/database.ts";
import { startService } from "../../../support/service/service.ts";
import { startRun } from "../../../support/sessions/runs.ts";
import { decoyPayer, giveBack, newClock, ownerOf, pay, sentBy } from "../../../support/sessions/stage.ts";

/** Refunds of USDC that was sent to a decoy. */

const clock = newClock();
const chain = await forFile(startTestChain());
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, jobs: false, now: clock.now, config: { rpcUrls } }));
const owner = await forFile(ownerOf(service.database));
const ground = { chain, owner, at: service.url };
const decoys = (await Promise.all([1, 2, 3, 4, 5, 6, 7].map(() => startRun(ground, "recipient")))).map(
  ({ decoy }) => decoy,
);

let decoy: Address;

beforeEach(() => {
  decoy = decoys.pop() as Address;
});

const balance = (account: LocalAccount | Address) =>
  chain.usdcBalance(typeof account === "string" ? account : account.address);

/** Advances the clock and makes everything mined before the call final. */
async function later(seconds: number): Promise<void> {
  clock.add(seconds);
  await chain.increaseTime(seconds);
  await chain.mine(3);
}

/** Runs a refund pass a minute later, with everything mined before the call final. */
async function pass(seconds = 61): Promise<number> {
  await later(seconds);
  return giveBack(service);
}

const DAY = 86_400;
const transfer = { address: chain.network.usdc.address, functionName: "transferFrom" } as const;
const ABI = [
  {
    type: "function",
    name: "transferFrom",
    stateMutability: "nonpayable",
    inputs: [
      { name: "from", type: "address" },
      { name: "to", type: "address" },
      { name: "value", type: "uint256" },
    ],
    outputs: [{ type: "bool" }],
  },
] as const;

test("Every sender is refunded once, and only for final transfers", async () => {
  const first = await decoyPayer(chain, decoy, 1_000_000n);
  const second = await newPayer(chain, 2_500_000n);
  await pay(chain, second, { to: decoy, value: 2_000_000n });
  await pay(chain, second, { to: decoy, value: 500_000n });
  // With automine the final block is two behind the head, so the last two transfers are not final.
  clock.add(61);
  expect(await giveBack(service)).toBe(1);
  expect([await balance(first), await balance(second)]).toEqual([1_000_000n, 0n]);
  expect(await pass()).toBe(1);
  expect([await balance(first), await balance(second), await balance(decoy)]).toEqual([1_000_000n, 2_500_000n, 0n]);
  for (let times = 0; times < 3; times++) expect(await pass(1_300)).toBe(0);
  expect(service.logged.filter((line) => line.includes("will be sent back"))).toHaveLength(2);
});

test("A blacklisted sender does not block other refunds and is refunded once that is possible", async () => {
  const blacklisted = await decoyPayer(chain, decoy, 1_000_000n);
  const other = await decoyPayer(chain, decoy, 1_000_000n);
  await chain.blacklist(blacklisted.address);
  expect(await pass()).toBe(1);
  expect([await balance(blacklisted), await balance(other)]).toEqual([0n, 1_000_000n]);
  expect(service.logged.filter((line) => line.includes("blacklisted") && line.includes("not sent back"))).toHaveLength(
    1,
  );
  // The refund is not retried every minute and costs no gas.
  const sent = await sentBy(owner);
  expect(await pass()).toBe(0);
  expect(service.logged.filter((line) => line.includes("blacklisted"))).toHaveLength(1);
  expect(await sentBy(owner)).toBe(sent);
  await chain.unblacklist(blacklisted.address);
  expect(await pass(2 * 3_600)).toBe(1);
  expect([await balance(blacklisted), await balance(decoy)]).toEqual([1_000_000n, 0n]);
});

test("A transfer of zero is not refunded, because anyone can make one in another account's name", async () => {
  const bystander = await newPayer(chain, 1_000_000n);
  const args = [bystander.address, decoy, 0n] as const;
  await chain.client.writeContract({ ...transfer, abi: ABI, account: devAccount(0), args });
  const sent = await sentBy(owner);
  expect(await pass()).toBe(0);
  expect(await sentBy(owner)).toBe(sent);
  const { rows } = await owner.query("SELECT FROM decoy_debt WHERE sender = $1", [binary(bystander.address)]);
  expect(rows).toEqual([]);
});

test("Dust from one sender is refunded in one transfer once it reaches the least refund", async () => {
  const sender = await newPayer(chain, LEAST_REFUND);
  const another = await decoyPayer(chain, decoy, 1n);
  const sent = await sentBy(owner);
  await pay(chain, sender, { to: decoy, value: 1n });
  await pay(chain, sender, { to: decoy, value: LEAST_REFUND - 2n });
  expect(await pass()).toBe(0);
  await pay(chain, sender, { to: decoy, value: 1n });
  expect(await pass()).toBe(1);
  expect([await balance(sender), await balance(another), await balance(decoy)]).toEqual([LEAST_REFUND, 0n, 1n]);
  expect(await sentBy(owner)).toBe(sent + 1);
});

test("A sender gets at most one refund per day", async () => {
  const sender = await newPayer(chain, 2n * LEAST_REFUND);
  const [another = decoy] = decoys;
  for (const to of [decoy, another]) await pay(chain, sender, { to, value: LEAST_REFUND });
  expect(await pass()).toBe(1);
  expect(await pass()).toBe(0);
  expect(await pass(DAY)).toBe(1);
  expect(await balance(sender)).toBe(2n * LEAST_REFUND);
  await pay(chain, sender, { to: decoy, value: LEAST_REFUND });
  for (let times = 0; times < 2; times++) expect(await pass(3_600)).toBe(0);
  expect(await pass(DAY)).toBe(1);
  expect(await balance(sender)).toBe(2n * LEAST_REFUND);
});

describe("The refund job", () => {
  /** Records the block ranges of all `eth_getLogs` calls from now on. */
  function askedFor(): { from: number; to: number }[] {
    const asked: { from: number; to: number }[] = [];
    node.become(async (call, on) => {
      const [range] = (call.params ?? []) as { fromBlock: string; toBlock: string }[];
      if (call.method === "eth_getLogs" && range)
        asked.push({ from: Number(range.fromBlock), to: Number(range.toBlock) });
      return on(call);
    });
    onTestFinished(() => node.become(null));
    return asked;
  }
  const position = async () => Number((await owner.query("SELECT next_block FROM decoy_watch")).rows[0].next_block);
  const moveTo = (block: number) => owner.query("UPDATE decoy_watch SET next_block = $1", [block]);
  const another = () =>
    startService({
      chain,
      database: service.database,
      jobs: false,
      now: clock.now,
      config: { rpcUrls, decoySeed: service.config.decoySeed },
    });

  test("One of many processes does a pass in two log calls, and a restart continues at its position", async () => {
    const others = await Promise.all([another(), another()]);
    const sender = await decoyPayer(chain, decoy, LEAST_REFUND);
    await later(61);
    const asked = askedFor();
    const passes = await Promise.all([service, ...others].map(giveBack));
    expect(passes.toSorted()).toEqual([0, 0, 1]);
    expect(await balance(sender)).toBe(LEAST_REFUND);
    for (const other of others) await other.stop();
    const final = asked[0]?.to ?? 0;
    expect(asked).toEqual([1, 2].map(() => ({ from: 0, to: final })));
    expect(await position()).toBe(final + 1);

    const restarted = await another();
    asked.length = 0;
    await moveTo(final + 100_000);
    await later(61);
    expect(await giveBack(restarted)).toBe(0);
    expect(asked).toEqual([]);
    // Transfers that are read again are not refunded again.
    await moveTo(0);
    await later(DAY);
    expect(await giveBack(restarted)).toBe(0);
    expect(asked).toHaveLength(2);
    expect(await balance(decoy)).toBe(0n);
    await restarted.stop();
  });

  test("Refunds stop at the daily limit and continue the next day", async () => {
    await later(2 * DAY);
    await owner.query(
      `INSERT INTO decoy_debt (chain, decoy, sender, session, received, returned, since, due_at, submitted_at)
       SELECT 8453, $1, decode(lpad(to_hex(n), 40, '0'), 'hex'), 'x', 1, 1, $2, $2, $2 FROM generate_series(1, $3) n`,
      [binary(decoy), clock.now(), REFUNDS_A_DAY],
    );
    const sender = await decoyPayer(chain, decoy, LEAST_REFUND);
    expect(await pass()).toBe(0);
    expect(await balance(sender)).toBe(0n);
    expect(await pass(DAY)).toBe(1);
    expect(await balance(sender)).toBe(LEAST_REFUND);
  });
});
