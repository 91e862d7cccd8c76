import { setTimeout as sleep } from "node:timers/promises";
import { type Address, encodeFunctionData, parseEventLogs } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";
import { putBehindProxy } from "../../test/support/chain/usdc-proxy.ts";
import { judgeAll } from "./goals.ts";
import { pay, sign } from "./paying.ts";
import { BASE, inWorld, type Side, type World } from "./world.ts";

const SINGLES = 5;
/** How many arrive together, and the most gas that one of them may take, over the peer's. */
const SIZES = [
  { size: 10, most: 0.6 },
  { size: 50, most: 0.56 },
] as const;
/** What one bad payer among ten may cost beside nine honest ones: less than its payment alone. */
const MOST_BAD = 1;
const SENT_WITHIN_MS = 30_000;
const BURNER: Address = "0x00000000000000000000000000000000bad00001";

/** What a payer does after its payment was simulated and sent, and before it is mined. */
const TRICKS = {
  "moves its USDC away": async ({ chain }, from) => {
    await chain.impersonateAccount({ address: from });
    await chain.setBalance({ address: from, value: 10n ** 18n });
    const value = await chain.readContract({ ...TOKEN, account: from, functionName: "balanceOf", args: [from] });
    const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [BURNER, value] });
    // Offers more than the batch, so it comes first in the block.
    const fees = { gas: 200_000n, maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n };
    await chain.sendTransaction({ account: from, to: BASE.usdc.address, data, ...fees });
  },
  "delegates to code that burns all gas": ({ chain }, from) =>
    chain.setCode({ address: from, bytecode: `0xef0100${BURNER.slice(2)}` }),
} as const satisfies Record<string, (world: World, payer: Address) => Promise<unknown>>;
type Trick = keyof typeof TRICKS;

/** Circle's proxy answers nobody who asks without a sender. */
const TOKEN = { address: BASE.usdc.address, abi: USDC_ABI } as const;
const PAYERS = 2 * SINGLES + SIZES.reduce((sum, { size }) => sum + size + 1, 10) + 11 * Object.keys(TRICKS).length;

/**
 * What settling costs, from receipts, with Circle's proxy as on Base. Blocks are mined by hand: whatever waits for one
 * is settled together.
 */
export const gas = () =>
  inWorld({ mining: [], payers: PAYERS, settings: { BATCH_WAIT_MS: "2000" } }, async (world) => {
    await putBehindProxy({ client: world.chain, network: BASE });
    await world.chain.setCode({ address: BURNER, bytecode: "0x5b5f56" }); // JUMPDEST, PUSH0, JUMP
    await world.chain.setAutomine(false);
    const fresh = [...world.payers];
    const take = (count: number) => fresh.splice(0, count);
    const alone = async (side: Side) => {
      const settled: Settled[] = [];
      for (const payer of take(SINGLES)) settled.push(...(await settle({ world, side, groups: [[payer]] })));
      return settled.reduce((sum, one) => sum + one.gas, 0) / settled.length;
    };
    const [peer, single] = [await alone(world.sides.peer), await alone(world.sides.ours)];
    console.log(`gas of a payment alone: peer ${Math.round(peer)}, ours ${Math.round(single)}`);
    // The first goes at once and the others wait for it.
    const together = async (size: number, trick?: Trick) => {
      const groups = [take(1), take(size)];
      const settled = await settle({ world, side: world.sides.ours, groups, trick });
      return settled.reduce((most, one) => (one.payments > most.payments ? one : most));
    };
    const goals = [];
    for (const { size, most } of SIZES) {
      const { payments, gas: used } = await together(size);
      console.log(
        `${size} that arrive together: ${payments} in one transaction, ${Math.round(used / payments)} gas each`,
      );
      const what = `gas a payment of ${payments}, over the peer's alone`;
      goals.push({ what, value: used / payments / peer, most });
    }
    const nine = await together(9);
    for (const trick of Object.keys(TRICKS) as Trick[]) {
      const spoiled = await together(10, trick);
      const extra = spoiled.gas - nine.gas;
      console.log(
        `a payer among ten ${trick}: ${spoiled.payments} settled, ${extra} gas more than ${nine.payments} without it`,
      );
      goals.push({ what: "extra gas over the peer's alone", value: extra / peer, most: MOST_BAD });
    }
    return judgeAll(goals);
  });

/** A transaction, and how many payments settled in it. */
interface Settled {
  readonly payments: number;
  readonly gas: number;
}

interface Settling {
  readonly world: World;
  readonly side: Side;
  /** Who pays, group by group: the next one comes when the one before has been sent. */
  readonly groups: readonly (readonly PrivateKeyAccount[])[];
  /** What the payer in the middle of the last group does. */
  readonly trick?: Trick | undefined;
}

/** Everything that the side has sent for these payments. */
async function settle({ world, side, groups, trick }: Settling): Promise<readonly Settled[]> {
  const { chain } = world;
  const from = await chain.getBlockNumber();
  const answers: Promise<unknown>[] = [];
  for (const [place, group] of groups.entries()) {
    const headers = await Promise.all(group.map((payer) => sign(side, payer, 1)));
    answers.push(...headers.flat().map((header) => pay(side, header)));
    const isSent = async () => (await waiting(world, side)) > place;
    if (!(await waitUntil(isSent, SENT_WITHIN_MS))) throw new Error("nothing was sent");
  }
  const last = groups.at(-1) ?? [];
  const bad = last[last.length >> 1];
  if (trick !== undefined && bad !== undefined) await TRICKS[trick](world, bad.address);
  let isOver = false;
  const all = Promise.all(answers).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    if ((await waiting(world, side)) > 0) await chain.mine({ blocks: 1 });
    await sleep(50);
  }
  await all;
  return minedAfter(world, side, from);
}

/** How many of the side's transactions no block holds. */
async function waiting({ chain }: World, { sender }: Side): Promise<number> {
  const { pending } = await chain.getTxpoolContent();
  const own = Object.entries(pending).filter(([address]) => address.toLowerCase() === sender.toLowerCase());
  return own.reduce((sum, [, byNonce]) => sum + Object.keys(byNonce).length, 0);
}

async function minedAfter({ chain }: World, { sender, payTo }: Side, from: bigint): Promise<readonly Settled[]> {
  const settled: Settled[] = [];
  for (let blockNumber = from + 1n; blockNumber <= (await chain.getBlockNumber()); blockNumber++) {
    const { transactions } = await chain.getBlock({ blockNumber });
    for (const hash of transactions) {
      const { from: by, gasUsed, logs } = await chain.getTransactionReceipt({ hash });
      if (by !== sender.toLowerCase()) continue;
      const transfers = parseEventLogs({ abi: USDC_ABI, eventName: "Transfer", logs });
      const payments = transfers.filter(({ args }) => args.to.toLowerCase() === payTo).length;
      settled.push({ payments, gas: Number(gasUsed) });
    }
  }
  return settled;
}
