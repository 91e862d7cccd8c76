import { formatUsd } from "../platform/money.ts";
import type { Network } from "../platform/networks.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Chain } from "./chain.ts";
import type { Journal, NewPayment } from "./journal.ts";

interface Parts {
  readonly journal: Pick<Journal, "inFlightBefore">;
  readonly chains: Readonly<Record<Network, Pick<Chain, "funds">>>;
}

/**
 * Why a payer's balance does not cover a payment together with those in flight that came before it; null if it does.
 * Each of them alone would pass a simulation. The balance and the nonces are read at one block: a payment that settles
 * meanwhile is counted once.
 */
export async function shortfall(
  { journal, chains }: Parts,
  { key, value }: Pick<NewPayment, "key" | "value">,
): Promise<string | null> {
  const { network, payer } = key;
  const others = await journal.inFlightBefore(key);
  if (others.length === 0) return null;
  const { balance, unused } = await chains[network].funds(
    payer,
    others.map(({ nonce }) => nonce),
  );
  const open = others.filter(({ nonce }) => unused.includes(nonce));
  const promised = open.reduce((sum, other) => sum + other.value, 0n);
  if (promised + value <= balance) return null;
  const [has, needs, wants] = [balance, promised, value].map(
    (amount) => `${formatUsd(amount)} ${NETWORKS[network].money}`,
  );
  return `The payer's balance of ${has} does not cover this payment of ${wants} and its ${open.length} others in flight (${needs}). Wait until those have settled, or add funds, and sign a new one.`;
}
