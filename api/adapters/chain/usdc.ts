import type { PublicClient } from "viem";
import { usdcAbi, usdcEventsAbi } from "../../../contracts/abi.ts";
import type { Received, UsdcTransfers } from "../../certification/decoys/decoy-store.ts";
import type { UsdcReader } from "../../certification/proofs/proof-store.ts";
import type { NetworkFacts } from "../../kernel/networks.ts";
import type { Address } from "../../kernel/wallet.ts";
import { discreet } from "./rpc-errors.ts";

/** Deployed at one address on Base, Base Sepolia and the local chains (multicall3.com). */
const MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11";
/** Providers reject wider `eth_getLogs` ranges. */
const LOG_RANGE = 9_000n;
const [, TRANSFER] = usdcEventsAbi;

/** Reads one chain's USDC for maintenance: many look-ups in one call, at one block. */
export function createUsdcReader(client: PublicClient, { usdc }: NetworkFacts): UsdcReader & UsdcTransfers {
  const read = <T>(calls: readonly { functionName: "balanceOf" | "authorizationState"; args: readonly unknown[] }[]) =>
    calls.length === 0
      ? Promise.resolve([] as T[])
      : (client.multicall({
          allowFailure: false,
          multicallAddress: MULTICALL3,
          contracts: calls.map((call) => ({ address: usdc.address, abi: usdcAbi, ...call })) as never,
        }) as unknown as Promise<T[]>);
  return {
    finalTime: discreet(async () => (await client.getBlock({ blockTag: "finalized" })).timestamp),
    areUsed: discreet((authorizations) =>
      read<boolean>(
        authorizations.map(({ payer, nonce }) => ({ functionName: "authorizationState", args: [payer, nonce] })),
      ),
    ),
    balancesOf: discreet((addresses) =>
      read<bigint>(addresses.map((address) => ({ functionName: "balanceOf", args: [address] }))),
    ),
    receivedBy: discreet((address, fromBlock) =>
      receivedBy(client, usdc.address, { to: address, first: BigInt(fromBlock) }),
    ),
  };
}

async function receivedBy(
  client: PublicClient,
  token: Address,
  { to, first }: { readonly to: Address; readonly first: bigint },
): Promise<Received[]> {
  const { number: last } = await client.getBlock({ blockTag: "finalized" });
  const found: Received[] = [];
  for (let from = first; from <= last; from += LOG_RANGE) {
    const end = from + LOG_RANGE - 1n;
    const logs = await client.getLogs({
      address: token,
      event: TRANSFER,
      args: { to },
      fromBlock: from,
      toBlock: end < last ? end : last,
      strict: true,
    });
    for (const { args, transactionHash: transaction, logIndex } of logs) {
      const sender = args.from.toLowerCase() as Address;
      found.push({ from: sender, to, value: args.value, transaction, logIndex });
    }
  }
  return found;
}
