import { createHash } from "node:crypto";
import type { Attestation } from "./attestation.ts";
import type { Evidence } from "./evidence.ts";
import type { PartyTiers } from "./parties.ts";
import type { VerdictRequest } from "./request.ts";
import type { Superseded } from "./store.ts";

export const verdictPath = (id: string): string => `/arbiter/verdict/${id}`;

/** A complete verdict without its proof. */
export interface Decided {
  readonly id: string;
  readonly request: VerdictRequest;
  readonly evidence: Evidence;
  readonly issuedAt: Date;
  /** Only in the scored variant. Read after the verdict was decided. */
  readonly tiers: PartyTiers | null;
  readonly supersedes: Superseded | null;
  readonly attestation: Attestation;
}

/**
 * Returns the public record of one verdict, before signing. It contains nothing of the deliverable itself (policy, rule
 * 6).
 */
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

/** A stored verdict, parsed. */
export type VerdictDocument = ReturnType<typeof verdictDocument>;

/**
 * Returns the SHA-256, in lowercase hex, of a whole signed document in the canonical form (RFC 8785) in which it is
 * stored. Corrections and the list of verdicts identify a verdict by this hash.
 */
export const documentSha256 = (document: string): string => createHash("sha256").update(document).digest("hex");
