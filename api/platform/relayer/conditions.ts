import type { PublicClient } from "viem";
import type { Address } from "../wallet.ts";
import { READINGS } from "../../settlement-status/nodes.ts";
import { type Market, marketOf } from "./fees.ts";

const CACHE_MS = 2_000;

/** What the chain says about an account that sends, and what it asks of the next transaction. */
export interface Conditions {
  readonly market: Market;
  /** Nonces below this are taken on the chain. It may lag: the ledger knows what was sent since. */
  readonly count: number;
  readonly balanceWei: bigint;
}

/** A tenth stays for what gas limits do not show: the fee for a rollup's data on its parent chain. */
export const spendable = ({ balanceWei }: Conditions): bigint => (balanceWei * 9n) / 10n;

/** Rejects what the account cannot pay besides what it has to reserve; the next read asks the chain again. */
export function assertAffordable(
  { address, conditions }: { readonly address: Address; readonly conditions: ReadConditions },
  found: Conditions,
  { wei, reserved }: { readonly wei: bigint; readonly reserved: bigint },
): void {
  if (spendable(found) >= wei + reserved) return;
  conditions.forget();
  throw new Error(`the relayer ${address} has no gas: ${found.balanceWei} wei, of which ${reserved} are reserved`);
}

export interface ReadConditions {
  (): Promise<Conditions>;
  /** The next read asks the chain. */
  forget(): void;
}

/** Reads the conditions at most every two seconds, however many transactions are sent. */
export function readConditions(client: PublicClient, address: Address): ReadConditions {
  let cached: { readonly at: number; readonly conditions: Promise<Conditions> } | null = null;
  const read = () => {
    if (cached !== null && performance.now() - cached.at < CACHE_MS) return cached.conditions;
    const conditions = ask(client, address);
    const entry = { at: performance.now(), conditions };
    cached = entry;
    conditions.catch(() => {
      if (cached === entry) cached = null;
    });
    return conditions;
  };
  return Object.assign(read, {
    forget: () => {
      cached = null;
    },
  });
}

async function ask(client: PublicClient, address: Address): Promise<Conditions> {
  const [market, count, balanceWei] = await Promise.all([
    askMarket(client),
    client.getTransactionCount({ address }),
    client.getBalance({ address }),
  ]);
  return { market, count, balanceWei };
}

/** One reading after the other, so that nodes behind one address take turns. */
async function askMarket(client: PublicClient): Promise<Market> {
  const readings: Market[] = [];
  while (readings.length < READINGS) readings.push(await readMarket(client));
  return marketOf(readings);
}

async function readMarket(client: PublicClient): Promise<Market> {
  const [{ baseFeePerGas }, tip] = await Promise.all([client.getBlock(), client.estimateMaxPriorityFeePerGas()]);
  if (baseFeePerGas === null) throw new Error("the chain has no base fee: it does not know EIP-1559");
  return { baseFee: baseFeePerGas, tip };
}
