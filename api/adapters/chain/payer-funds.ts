import type { PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Funds } from "../../payments/chain.ts";
import { MULTICALL3 } from "./multicall.ts";

interface Asked {
  readonly usdc: Address;
  readonly payer: Address;
  readonly nonces: readonly Hex[];
}

/** A payer's balance, and which of its nonces are unused, in one call and thus at one block. */
export async function payerFunds(client: PublicClient, { usdc, payer, nonces }: Asked): Promise<Funds> {
  const token = { address: usdc, abi: usdcAbi } as const;
  const [balance, ...used] = (await client.multicall({
    allowFailure: false,
    multicallAddress: MULTICALL3,
    // One call, however many nonces.
    batchSize: 0,
    contracts: [
      { ...token, functionName: "balanceOf", args: [payer] },
      ...nonces.map((nonce) => ({ ...token, functionName: "authorizationState", args: [payer, nonce] }) as const),
    ] as never,
  })) as readonly [bigint, ...boolean[]];
  return { balance, unused: nonces.filter((_, index) => used[index] === false) };
}
