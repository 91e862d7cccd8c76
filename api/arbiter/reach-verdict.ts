import { NETWORKS } from "../platform/networks.ts";
import type { Signer } from "../platform/signing/document.ts";
import { type Attestor, attest } from "./attestation.ts";
import { type Decided, documentSha256, verdictDocument } from "./document.ts";
import type { Evidence } from "./evidence.ts";
import { type EvidenceParts, gatherEvidence } from "./gather-evidence.ts";
import type { Tiers } from "./parties.ts";
import { ARBITER_NETWORK, CORRECTION_DAYS } from "./products.ts";
import { correctionId, type VerdictRequest } from "./request.ts";
import type { NewVerdict, SignedVerdict, StoredVerdict, Superseded, VerdictStore } from "./store.ts";

export interface VerdictParts extends EvidenceParts {
  readonly store: VerdictStore;
  readonly signer: Signer;
  /** The key that signs for contracts. */
  readonly attestor: Attestor;
  readonly tiers: Tiers;
  readonly baseUrl: string;
}

/** A verdict to be reached. */
export interface VerdictOrder {
  readonly id: string;
  readonly request: VerdictRequest;
  readonly supersedes: Superseded | null;
  readonly isScored: boolean;
}

/**
 * Gathers evidence, decides, and signs. Rejects with `Busy`, if the signal aborts, and while the tiers of a scored
 * verdict cannot be read.
 */
export async function reachVerdict(parts: VerdictParts, order: VerdictOrder, signal: AbortSignal): Promise<NewVerdict> {
  const { id, request, supersedes } = order;
  const evidence = await gatherEvidence(parts, request, signal);
  // The verdict is decided by now, so the tiers cannot affect it.
  const tiers = order.isScored && request.parties !== null ? await parts.tiers.of(request.parties) : null;
  signal.throwIfAborted();
  const decided = { id, request, supersedes, issuedAt: parts.now(), tiers };
  const { transfer } = evidence;
  return {
    ...(await verdictOf(parts, decided, evidence)),
    ...(transfer && {
      transfer: {
        ...transfer,
        decidedBefore: (by) => verdictOf(parts, decided, transfer.decidedBefore(by)),
      },
    }),
  };
}

/** Returns the signed verdict for this evidence. */
async function verdictOf(
  { signer, attestor, baseUrl }: VerdictParts,
  order: Omit<Decided, "evidence" | "attestation">,
  evidence: Evidence,
): Promise<SignedVerdict> {
  const { id, request, issuedAt, supersedes } = order;
  const { conditionsSha256, dealRef } = request;
  const outcome = evidence.verdict;
  const facts = { id, outcome, conditionsSha256, dealRef, issuedAt };
  const attestation = await attest(facts, NETWORKS[ARBITER_NETWORK].chainId, attestor);
  const decided: Decided = { ...order, evidence, attestation };
  const unsigned = verdictDocument(decided, { issuer: signer.issuer, baseUrl });
  const document = await signer.signAsText(unsigned, issuedAt);
  return {
    id,
    request,
    outcome,
    issuedAt,
    document,
    sha256: documentSha256(document),
    supersedes: supersedes?.id ?? null,
  };
}

export type Correction =
  | { readonly verdict: StoredVerdict }
  | { readonly refused: "unknown" }
  | { readonly refused: "too_late"; readonly issuedAt: Date }
  | { readonly refused: "corrected"; readonly by: string };

/**
 * Runs a verdict's claim again and lets the result supersede it: once, within 7 days, free (policy, rule 9). `reason`
 * states the arbiter's error and is public.
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
  // If a concurrent correction was stored first, it is the one that counts, with its own reason.
  const isOurs = JSON.parse(verdict.document).supersedes.reason === reason;
  return isOurs ? { verdict } : { refused: "corrected", by: verdict.id };
}
