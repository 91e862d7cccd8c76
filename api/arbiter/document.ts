import { createHash } from "node:crypto";
import type { Attestation } from "./attestation.ts";
import type { Evidence } from "./evidence.ts";
import type { PartyTiers } from "./parties.ts";
import { CORRECTION_DAYS } from "./products.ts";
import { reachVerdict, type VerdictParts } from "./reach-verdict.ts";
import { correctionId, type VerdictRequest } from "./request.ts";
import type { StoredVerdict, Superseded } from "./store.ts";

export const verdictPath = (id: string): string => `/arbiter/verdict/${id}`;

/** A whole verdict except its proof. */
export interface Decided {
  readonly id: string;
  readonly request: VerdictRequest;
  readonly evidence: Evidence;
  readonly issuedAt: Date;
  /** Only in the scored variant; read after the verdict was decided. */
  readonly tiers: PartyTiers | null;
  readonly supersedes: Superseded | null;
  readonly attestation: Attestation;
}

/** The public record of one verdict, before signing. It holds no content of a deliverable (policy, rule 6). */
export function verdictDocument(
  { id, request, evidence, issuedAt, tiers, supersedes, attestation }: Decided,
  { issuer, baseUrl }: { readonly issuer: string; readonly baseUrl: string },
) {
  const { parties, claimant, partiesNamedBy } = request;
  return {
    "@context": ["https://www.w3.org/ns/credentials/undefined-terms/v2"],
    type: "ArbiterVerdict",
    id,
    issuer,
    verdict: evidence.verdict,
    category: request.category,
    conditions_sha256: request.conditionsSha256,
    deal_ref: request.dealRef,
    ...(claimant && { claimant }),
    ...(claimant && parties && { parties_named_by: partiesNamedBy ?? ("claimant" as const) }),
    ...(parties && {
      parties: tiers ?? { payer: { wallet: parties.payer }, payee: { wallet: parties.payee } },
    }),
    facts: evidence.facts,
    timeline: evidence.timeline,
    policy_version: request.policyVersion,
    issued_at: issuedAt.toISOString(),
    verdict_url: `${baseUrl}${verdictPath(id)}`,
    ...(supersedes && { supersedes }),
    attestation,
  };
}

/** A stored verdict as it is read back, with its signature. */
export type VerdictDocument = ReturnType<typeof verdictDocument>;

/**
 * What corrections and the list of verdicts name a verdict by: SHA-256 of the canonical form (RFC 8785) of the whole signed document, which is
 * the form it is stored in. Lower-case hex.
 */
export const documentSha256 = (document: string): string => createHash("sha256").update(document).digest("hex");

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
