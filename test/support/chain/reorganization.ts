import { encodeFunctionData, type Hex, type LocalAccount, serializeTransaction } from "viem";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { Signed } from "../payments/signing.ts";
import type { TestChain } from "./chain.ts";

/** The last blocks are replaced by as many, with these raw transactions in these of the new ones and nothing else. */
export async function reorganize(
  { client }: TestChain,
  depth: number,
  kept: readonly (readonly [raw: Hex, block: number])[],
): Promise<void> {
  await client.request({ method: "anvil_reorg", params: [depth, kept] } as never);
}

/** The signed bytes of a transaction that the chain knows. */
export async function rawOf({ client }: TestChain, hash: Hex): Promise<Hex> {
  const { r, s, yParity, ...transaction } = await client.getTransaction({ hash });
  const { chainId, nonce, gas, to, input: data, maxFeePerGas, maxPriorityFeePerGas } = transaction;
  return serializeTransaction(
    { type: "eip1559", chainId: Number(chainId), nonce, gas, to, data, maxFeePerGas, maxPriorityFeePerGas } as never,
    { r, s, yParity: yParity ?? 0 },
  );
}

/** A transaction to USDC, signed and not sent, that outbids whatever else is in the pool. */
export async function rawToUsdc(
  { client, network }: TestChain,
  { by, data }: { readonly by: LocalAccount; readonly data: Hex },
): Promise<Hex> {
  return by.signTransaction({
    type: "eip1559",
    chainId: network.chainId,
    nonce: await client.getTransactionCount({ address: by.address }),
    gas: 200_000n,
    maxFeePerGas: 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 11n,
    to: network.usdc.address,
    data,
  });
}

/** The same authorization in a stranger's transaction, signed and not sent. */
export function anotherTransaction(chain: TestChain, { authorization, signature }: Signed): Promise<Hex> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
  const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transferWithAuthorization", args });
  return rawToUsdc(chain, { by: devAccount(5), data });
}
