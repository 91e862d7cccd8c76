import { createPublicClient, http, type PublicClient, parseAbi } from "viem";
import { NETWORKS, type Network } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Chain, Standing } from "../../payments/chain.ts";
import type { TransferSimulator } from "../../payments/exact/scheme.ts";
import type { Head } from "../../payments/scheme.ts";
import type { Settlement } from "../../payments/step-types.ts";
import { findSettlement } from "./find-settlement.ts";
import { discreet, isTransport } from "./rpc-errors.ts";
import { transferRefusal } from "./transfer-refusal.ts";

const ERC1271 = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
const ERC1271_MAGIC = "0x1626ba7e";
const HEAD_CACHE_MS = 500;

export interface ChainReader extends Chain, TransferSimulator {
  readonly client: PublicClient;
  finalizedBlock(): Promise<number>;
}

/**
 * Reads one chain over JSON-RPC, batching concurrent calls. Transfers are found by (payer, nonce), never by a reported
 * hash.
 */
export function createChain(network: Network, rpcUrl: string): ChainReader {
  const facts = NETWORKS[network];
  const client = createPublicClient({
    transport: http(rpcUrl, { batch: { wait: 0 }, timeout: 10_000, retryCount: 1 }),
    cacheTime: 0,
  });
  const head = cachedHead(client);
  const usdc = { client, usdc: facts.usdc.address, blockSeconds: facts.blockSeconds };
  return {
    client,
    head: discreet(head),
    finalizedBlock: discreet(async () => Number((await client.getBlock({ blockTag: "finalized" })).number)),
    verifyContractSignature: discreet((payer, digest, signature) =>
      verifyContractSignature(client, { payer, digest, signature }),
    ),
    simulate: discreet(async (authorization, signature) => {
      const [refused, head] = await Promise.all([
        transferRefusal(client, facts, { authorization, signature }),
        client.getBlock().then(asHead),
      ]);
      return { refused, head };
    }),
    standing: discreet((settlement) => standing(client, settlement)),
    look: discreet(async (expected) => findSettlement(usdc, expected, await head())),
  };
}

const asHead = ({ number, timestamp }: { number: bigint; timestamp: bigint }): Head => ({
  number: Number(number),
  time: timestamp,
});

function cachedHead(client: PublicClient): () => Promise<Head> {
  let cached: { at: number; head: Promise<Head> } | null = null;
  return () => {
    if (cached !== null && Date.now() - cached.at < HEAD_CACHE_MS) return cached.head;
    const head = client.getBlock().then(asHead);
    const entry = { at: Date.now(), head };
    cached = entry;
    // A failed read is not cached: the next caller tries again.
    head.catch(() => {
      if (cached === entry) cached = null;
    });
    return head;
  };
}

interface ContractSignature {
  readonly payer: Address;
  readonly digest: Hex;
  readonly signature: Hex;
}

async function verifyContractSignature(
  client: PublicClient,
  { payer, digest, signature }: ContractSignature,
): Promise<boolean> {
  const code = await client.getCode({ address: payer });
  if (code === undefined || code === "0x") return false;
  try {
    const answer = await client.readContract({
      address: payer,
      abi: ERC1271,
      functionName: "isValidSignature",
      args: [digest, signature],
    });
    return answer === ERC1271_MAGIC;
  } catch (error) {
    if (isTransport(error)) throw error;
    return false;
  }
}

/** A final block never changes: once its hash matches the settlement's, it always will. */
async function standing(client: PublicClient, { block, blockHash }: Settlement): Promise<Standing> {
  const final = await client.getBlock({ blockTag: "finalized" });
  const found = await client.getBlock({ blockNumber: BigInt(block) }).catch(() => null);
  if (found?.hash !== blockHash) return "unknown";
  return final.number >= BigInt(block) ? "final" : "pending";
}
