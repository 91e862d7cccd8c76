import { CORRECTION_DAYS } from "./products.ts";
import { reachVerdict, type VerdictParts } from "./reach-verdict.ts";
import { correctionId } from "./request.ts";
import type { StoredVerdict } from "./verdict-store.ts";

export type Correction =
  | { readonly verdict: StoredVerdict }
  | { readonly refused: "unknown" }
  | { readonly refused: "too_late"; readonly issuedAt: Date }
  | { readonly refused: "corrected"; readonly by: string };

/**
 * Runs a verdict's claim again and lets the result supersede it: once, within 7 days, free (policy, rule 9). `reason`
 * says what the arbiter got wrong, and is public.
 */
export async function correctVerdict(parts: VerdictParts, id: string, reason: string): Promise<Correction> {
  const old = await parts.store.get(id);
  if (old === null) return { refused: "unknown" };
  if (old.supersededBy !== null) return { refused: "corrected", by: old.supersededBy };
  if (parts.now().getTime() > old.issuedAt.getTime() + CORRECTION_DAYS * 86_400_000)
    return { refused: "too_late", issuedAt: old.issuedAt };
  const order = {
    id: correctionId(id),
    request: old.request,
    supersedes: { id, sha256: old.sha256, reason },
    isScored: JSON.parse(old.document).parties?.payer.tier !== undefined,
  };
  const verdict = await parts.store.record(await reachVerdict(parts, order, new AbortController().signal));
  // A concurrent correction may have come first: then that one stands, with its own reason.
  const isOurs = JSON.parse(verdict.document).supersedes.reason === reason;
  return isOurs ? { verdict } : { refused: "corrected", by: verdict.id };
}
