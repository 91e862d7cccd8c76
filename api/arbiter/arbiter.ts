import { answered, type Completion, type StoredAnswer } from "../platform/http/answer.ts";
import type { Intake, NotYet, Sale } from "../platform/http/route.ts";
import type { Address } from "../platform/wallet.ts";
import { verdictPath } from "./document.ts";
import type { EscrowDeals, Parties, PartiesSource } from "./parties.ts";
import type { Policy } from "./policy/policy.ts";
import { type DecidingPolicies, decidingPolicies, rulesFor, versionNumbered } from "./policy/version.ts";
import type { Variant } from "./products.ts";
import { reachVerdict, type VerdictParts } from "./reach-verdict.ts";
import { escrowPayment, NOT_NEUTRAL, type VerdictRequest, verdictId } from "./request.ts";
import type { SignedVerdict, VerdictStore } from "./store.ts";

export interface ArbiterParts extends VerdictParts {
  readonly deals: EscrowDeals;
  readonly ownWallets: readonly Address[];
}

export interface Arbiter extends Pick<VerdictStore, "get" | "list" | "corrections" | "totals"> {
  /** The address of the key that signs for contracts. */
  readonly attestor: Address;
  /** The published policies that decide claims made now, earliest first. */
  readonly policies: () => DecidingPolicies;
  /** A published policy: past, current or future; null if no policy has that number. */
  readonly policy: (version: number) => Policy | null;
  /**
   * Checks what depends on the payer, the chain, or the index: who claims, the parties of a deal in our own escrow, and
   * whether scores can be read.
   */
  readonly admit: (request: VerdictRequest, by: Claimant) => Promise<Intake<VerdictRequest>>;
  /**
   * Looks up the history behind the parties' scores on behalf of a client. `admit` reports a deal that cannot be read.
   */
  readonly prepare: (request: VerdictRequest, client: string) => Promise<NotYet | null>;
  /** Returns the verdict that the payment buys. Rejects with `Busy`, or if another process now owns the sale. */
  readonly decide: (sale: Sale<VerdictRequest>, variant: Variant) => Promise<Completion>;
}

/** The wallet whose signature pays for a verdict, and the variant it buys. */
export interface Claimant {
  readonly payer: Address;
  readonly variant: Variant;
}

export function createArbiter(parts: ArbiterParts): Arbiter {
  const { store, policies, now } = parts;
  return {
    attestor: parts.attestor.address,
    get: store.get,
    list: store.list,
    corrections: store.corrections,
    totals: store.totals,
    policies: () => decidingPolicies(policies, now()),
    policy: (version) => versionNumbered(policies, version)?.policy ?? null,
    admit: (request, by) => admit(parts, request, by),
    async prepare(request, client) {
      const payment = escrowPayment(request);
      const known = payment === null ? null : await parts.deals.parties(payment).catch(() => null);
      const parties = known ?? request.parties;
      return parties === null ? null : parts.tiers.prepare(parties, client);
    },
    async decide({ input, payment, signal }, variant) {
      const id = verdictId(payment);
      const request = { ...input, claimant: payment.payer };
      const order = { id, request, supersedes: null, isScored: variant === "scored" };
      const verdict = await reachVerdict(parts, order, signal);
      return verdict.transfer === undefined
        ? answered(answerWith(verdict), [store.adding(verdict)])
        : { complete: async (transaction) => answerWith(await store.add(verdict, transaction)) };
    },
  };
}

const answerWith = ({ id, document }: SignedVerdict): StoredAnswer => ({
  status: 200,
  body: Buffer.from(document),
  location: verdictPath(id),
});

async function admit(parts: ArbiterParts, submitted: VerdictRequest, by: Claimant): Promise<Intake<VerdictRequest>> {
  const { deals, tiers, ownWallets } = parts;
  const claimed = claimedBy(parts, submitted, by.payer);
  if ("refused" in claimed) return claimed;
  const { request, named } = claimed;
  const payment = escrowPayment(request);
  const known = payment === null ? null : await deals.parties(payment).catch(() => "unavailable" as const);
  if (known === "unavailable")
    return { unavailable: "The parties to this deal cannot currently be read from the chain." };
  const parties = known ?? named ?? request.parties;
  if (known !== null && request.parties !== null && !areSame(known, request.parties))
    return refused("parties", "the escrow contract names different parties for this payment");
  if (
    parties !== null &&
    named !== null &&
    [known, request.parties].some((one) => one !== null && !areSame(one, named))
  )
    return refused("parties", "the claim itself names different parties");
  if (parties !== null && [parties.payer, parties.payee].some((party) => ownWallets.includes(party)))
    return refused("deal_ref", NOT_NEUTRAL);
  if (by.variant === "scored") {
    if (parties === null)
      return refused("parties", "expected {payer, payee}, or a deal_ref that names a payment in our escrow");
    if (!(await tiers.ready(parties))) return { unavailable: "Scores are temporarily unavailable." };
  }
  return { input: { ...request, parties, ...namedBy({ known, named }) } };
}

function namedBy({ known, named }: Readonly<Record<"known" | "named", Parties | null>>): {
  readonly partiesNamedBy?: PartiesSource;
} {
  if (known !== null) return { partiesNamedBy: "escrow_contract" };
  return named === null ? {} : { partiesNamedBy: "signed_offer" };
}

/** Makes the payer the claimant if the category requires one. Returns the claim and the parties that it names. */
function claimedBy(
  { policies }: ArbiterParts,
  request: VerdictRequest,
  payer: Address,
): { readonly request: VerdictRequest; readonly named: Parties | null } | ReturnType<typeof refused> {
  const { category } = rulesFor(policies, { version: request.policyVersion, category: request.category });
  const claimed = category.claimedBy?.(request.conditions, payer);
  if (claimed === undefined) return { request, named: null };
  if ("refused" in claimed) return refused(claimed.refused.path, claimed.refused.message, claimed.refused.rule);
  return { request: { ...request, conditions: claimed.conditions }, named: claimed.parties };
}

const refused = (path: string, message: string, rule = 7) => ({ refused: [{ path, message, rule }] });

const areSame = (one: Parties, other: Parties): boolean => one.payer === other.payer && one.payee === other.payee;
