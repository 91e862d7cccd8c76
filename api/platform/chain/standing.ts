import type { PublicClient } from "viem";
import type { Standing } from "../../payments/chain.ts";
import type { Settlement } from "../../payments/step-types.ts";
import { standingOf } from "../../settlement-status/nodes.ts";
import type { FinalBlock } from "./finality.ts";

/**
 * A final block never changes: once its hash matches the settlement's, it always will. That is concluded from three nodes
 * in turn, of which none may show another block. While the block is not final, one node that shows it is enough.
 */
export async function standing(
  client: PublicClient,
  readFinal: () => Promise<FinalBlock | null>,
  { block, blockHash }: Pick<Settlement, "block" | "blockHash">,
): Promise<Standing> {
  const hashAt = async () => (await client.getBlock({ blockNumber: BigInt(block) })).hash;
  const isThere = async () => (await hashAt().catch(() => null)) === blockHash;
  const final = await readFinal();
  if (final === null || final.number < BigInt(block))
    return (await isThere()) || (await isThere()) ? "pending" : "unknown";
  const found = await standingOf({ hashAt }, { number: block, hash: blockHash }).catch(() => "gone");
  if (found === "gone") return "unknown";
  return found === "agreed" ? "final" : "pending";
}
