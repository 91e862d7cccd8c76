import { type Address, encodeFunctionData, type Hex, parseAbi, parseSignature, toHex } from "viem";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { usdcAbi } from "../../contracts/abi.ts";
import { DEV_ACCOUNTS } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { signAuthorization, signReceiveAuthorization } from "../support/payments/signing.ts";

const DAY_SECONDS = 86_400;
/** Derived once, because deriving an account from its mnemonic takes longer than a signature. */
const account = (index: number) => {
  const found = DEV_ACCOUNTS[index];
  if (found === undefined) throw new Error(`There is no development account ${index}.`);
  return found;
};
const RELAYER = account(9).address;
/** The accounts that sign and send. The eighth belongs to the service. */
const SIGNERS = DEV_ACCOUNTS.slice(0, 8);
export const SERVICE = account(7).address.toLowerCase() as Address;
/** Wallets that only receive. */
const RECEIVERS = Array.from({ length: 8 }, (_, i): Address => `0x${(0xabc000 + i).toString(16).padStart(40, "0")}`);
/** More payees than the index stores individually for one payer. */
const CROWD = Array.from({ length: 70 }, (_, i): Address => `0x${(0xcede00 + i).toString(16).padStart(40, "0")}`);
export const WALLETS: readonly Address[] = [
  ...SIGNERS.map(({ address }) => address.toLowerCase() as Address),
  ...RECEIVERS,
  MULTICALL3,
];

export const MULTICALL_ABI = parseAbi([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[])",
]);
/** EIP-3009's two functions. Each is also the name of the signed type. */
type Kind = "transferWithAuthorization" | "receiveWithAuthorization";

/** Random choices that are the same in every run. */
export function createDice(seed: number) {
  let state = seed;
  const below = (n: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  return { below, pick };
}

export interface Terms {
  readonly from: number;
  readonly to: Address;
  readonly value: bigint;
  readonly kind?: Kind;
}

type Dice = ReturnType<typeof createDice>;

function createWallets(chain: TestChain, dice: Dice) {
  const usdc = chain.network.usdc.address;
  const send = (from: Address, to: Address, data: Hex) =>
    chain.client.sendTransaction({ account: from, to, data, gas: 1_500_000n });
  const plainCall = (to: Address, value: bigint) =>
    encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [to, value] });
  const authorize = (terms: Terms) => authorizedCall(chain, terms, toHex(dice.below(2 ** 32) * 2 ** 20, { size: 32 }));
  return {
    plainCall,
    authorize,
    transfer: (from: Address, to: Address, value: bigint) => send(from, usdc, plainCall(to, value)),
    /** A payment that a third party sends for the payer. */
    pay: async (terms: Terms) => send(RELAYER, usdc, (await authorize(terms)).call),
    /** A payment that only the payee may send. */
    collect: async (terms: Omit<Terms, "kind">) =>
      send(terms.to, usdc, (await authorize({ ...terms, kind: "receiveWithAuthorization" })).call),
    batch: (calls: readonly Hex[]) => {
      const args = [calls.map((callData) => ({ target: usdc, allowFailure: true, callData }))] as const;
      return send(RELAYER, MULTICALL3, encodeFunctionData({ abi: MULTICALL_ABI, functionName: "aggregate3", args }));
    },
  };
}

/** Sends transactions to a chain that mines on request. */
export function createActor(chain: TestChain, seed: number) {
  const dice = createDice(seed);
  const wallets = createWallets(chain, dice);
  const { authorize, batch, collect, pay, plainCall, transfer } = wallets;
  const act = async () => {
    const [from, to, value] = [
      dice.below(8),
      dice.pick(WALLETS),
      dice.pick([1n, 999n, 1_000n, 49_999n, 50_000n, 250_000n, 250_000n]),
    ];
    const kind = dice.below(10);
    if (kind < 4) return transfer(account(from).address, to, value);
    if (kind < 6) return pay({ from, to, value });
    if (kind < 7) return collect({ from, to: account(dice.below(8)).address, value });
    const real = await authorize({ from, to, value });
    const others = [
      await authorize({ from: dice.below(8), to: dice.pick(WALLETS), value: 0n }),
      await authorize({ from: dice.below(8), to: dice.pick(WALLETS), value: 5n }),
    ];
    // The forged call fails because of its signature. A reader of only the first authorization in the input would
    // accept it.
    return batch([real.forged, plainCall(dice.pick(WALLETS), 1n), ...others.map(({ call }) => call), real.call]);
  };
  /** Pays each payee once, ten per transaction. Returns the transactions. */
  const payAll = async (payees: readonly Address[], terms: Pick<Terms, "from" | "value">) => {
    const sent: Hex[] = [];
    for (let n = 0; n < payees.length; n += 10) {
      const calls = payees.slice(n, n + 10).map(async (to) => (await authorize({ ...terms, to })).call);
      sent.push(await batch(await Promise.all(calls)));
    }
    return sent;
  };
  const mineAt = async (timestamp: number) => {
    await chain.client.setNextBlockTimestamp({ timestamp: BigInt(timestamp) });
    await chain.mine();
  };
  return { dice, act, pay, payAll, transfer, mineAt };
}

export type Actor = ReturnType<typeof createActor>;

interface Authorized {
  readonly call: Hex;
  /** The same authorization for another payee, so its signature is false. */
  readonly forged: Hex;
}

async function authorizedCall(chain: TestChain, { from, to, value, kind }: Terms, nonce: Hex): Promise<Authorized> {
  const payer = account(from);
  const functionName = kind ?? "transferWithAuthorization";
  const sign = functionName === "transferWithAuthorization" ? signAuthorization : signReceiveAuthorization;
  const message = { from: payer.address, to, value, validAfter: 0n, validBefore: 2n ** 40n, nonce } as const;
  const signature = await sign(payer, chain.network, message);
  const head = [message.from, to, value, 0n, message.validBefore, nonce] as const;
  const { r, s, v } = parseSignature(signature);
  const forgedHead = [message.from, RELAYER, 9_000_000n, 0n, message.validBefore, nonce] as const;
  const abi = USDC_ABI;
  return {
    // Some use the older form of the signature: (v, r, s).
    call:
      functionName === "transferWithAuthorization" && BigInt(s) % 2n === 1n && v !== undefined
        ? encodeFunctionData({ abi: usdcAbi, functionName, args: [...head, Number(v), r, s] })
        : encodeFunctionData({ abi, functionName, args: [...head, signature] }),
    forged: encodeFunctionData({ abi, functionName, args: [...forgedHead, signature] }),
  };
}

/**
 * Plays about 100 days of transfers, most with blocks at their edges. The first day begins after the chain's head.
 * Returns days since 1970.
 */
export async function playHistory(chain: TestChain, actor: Actor): Promise<{ firstDay: number; lastDay: number }> {
  await Promise.all([chain.fund(MULTICALL3, 10n ** 9n), miningUntilFunded(chain)]);
  const { timestamp } = await chain.client.getBlock();
  const firstDay = Math.floor(Number(timestamp) / DAY_SECONDS) + 1;
  const lastDay = firstDay + 104;
  await actor.payAll(CROWD, { from: 3, value: 50_000n });
  for (let day = firstDay; day <= lastDay; day += 1 + actor.dice.below(3)) {
    const seconds = actor.dice.pick([[0], [86_399], [0, 86_399], [1, 43_200]]);
    for (const second of seconds) {
      for (let n = actor.dice.below(3); n >= 0; n -= 1) await actor.act();
      await actor.mineAt(day * DAY_SECONDS + second);
    }
  }
  return { firstDay, lastDay };
}

/** `fund` waits for its transaction, and this chain does not mine automatically. */
async function miningUntilFunded(chain: TestChain): Promise<void> {
  while ((await chain.usdcBalance(MULTICALL3)) === 0n) await chain.mine();
}
