import type { Hex } from "../platform/wallet.ts";
import type { Chain } from "./chain.ts";
import type { Expected } from "./scheme.ts";
import type { View } from "./step-types.ts";

/**
 * What the chain shows, and whether what we sent was mined without settling, by whose doing. A stranger's copy may have been faster: then
 * ours reverts because the nonce is used, and a node that lags still shows it unused. So a failure counts only where the
 * nonce is unused after its block.
 */
export async function lookFor(chain: Chain, expected: Expected, failed: () => Promise<Hex | null>): Promise<View> {
  const view = await chain.look(expected);
  const transaction = view.nonce === "unused" ? await failed() : null;
  if (transaction === null) return view;
  const { isUnused, isPayersDoing } = await chain.afterFailure({ ...expected, transaction });
  if (!isUnused) return { nonce: "spent" };
  return isPayersDoing ? { nonce: "reverted", transaction } : { nonce: "reverted", transaction, excused: true };
}
