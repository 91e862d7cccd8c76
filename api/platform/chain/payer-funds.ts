import type { PublicClient } from "viem";
import type { Address, Hex } from "../wallet.ts";
import type { Funds } from "../../payments/chain.ts";
import { readAtBlock } from "./read-at-block.ts";
import { usdcCalls } from "./usdc-calls.ts";

interface Asked {
  readonly usdc: Address;
  readonly payer: Address;
  readonly nonces: readonly Hex[];
}

/** A payer's balance, and which of its nonces are unused, in one call and thus at one block. */
export async function payerFunds(client: PublicClient, { usdc, payer, nonces }: Asked): Promise<Funds> {
  const { balanceOf, isUsed } = usdcCalls(usdc);
  const balance = balanceOf(payer);
  const states = nonces.map((nonce) => ({ nonce, state: isUsed(payer, nonce) }));
  const { of } = await readAtBlock(client, { calls: [balance, ...states.map(({ state }) => state)] });
  return { balance: of(balance), unused: states.flatMap(({ nonce, state }) => (of(state) ? [] : [nonce])) };
}
