import type { QueuedCompletion } from "../kernel/completion.ts";
import type { Intake, NotYet, Sale } from "../kernel/route.ts";
import type { Address } from "../kernel/wallet.ts";
import { verdictPath } from "./document.ts";
import type { EscrowDeals, Parties } from "./parties.ts";
import type { Policy } from "./policy/policy.ts";
import { versionAt, versionNumbered } from "./policy/version.ts";
import type { Variant } from "./products.ts";
import { reachVerdict, type VerdictParts } from "./reach-verdict.ts";
import { escrowPayment, NOT_NEUTRAL, type VerdictRequest, verdictId } from "./request.ts";
import { VERDICT_QUEUE, type VerdictStore } from "./verdict-store.ts";

export interface ArbiterParts extends VerdictParts {
  readonly deals: EscrowDeals;
  readonly ownWallets: readonly Address[];
}

export interface Arbiter extends Pick<VerdictStore, "get" | "log" | "corrections" | "totals"> {
  /** The address of the key that signs for contracts. */
  readonly attestor: Address;
  /** The published policy for claims made now. */
  readonly currentPolicy: () => Policy;
  /** A published policy: past, current or future; null if no policy has that number. */
  readonly policy: (version: number) => Policy | null;
  /**
   * What only a chain or an index can answer: the parties of a deal in our own escrow, and whether scores can be read.
   */
  readonly admit: (request: VerdictRequest, variant: Variant) => Promise<Intake<VerdictRequest>>;
  /** Looks up what the parties' scores are made of, on behalf of a client. A deal that cannot be read is for `admit`. */
  readonly prepare: (request: VerdictRequest, client: string) => Promise<NotYet | null>;
  /** The one verdict a payment buys. Rejects with `Busy`, or if another process owns the sale by now. */
  readonly decide: (sale: Sale<VerdictRequest>, variant: Variant) => Promise<QueuedCompletion>;
}

export function createArbiter(parts: ArbiterParts): Arbiter {
  const { store, policies, now } = parts;
  return {
    attestor: parts.attestor.address,
    get: store.get,
    log: store.log,
    corrections: store.corrections,
    totals: store.totals,
    currentPolicy: () => versionAt(policies, now()).policy,
    policy: (version) => versionNumbered(policies, version)?.policy ?? null,
    admit: (request, variant) => admit(parts, request, variant),
    async prepare(request, client) {
      const payment = escrowPayment(request);
      const known = payment === null ? null : await parts.deals.parties(payment).catch(() => null);
      const parties = known ?? request.parties;
      return parties === null ? null : parts.tiers.prepare(parties, client);
    },
    async decide({ input, payment, signal }, variant) {
      const id = verdictId(payment);
      const order = { id, request: input, supersedes: null, isScored: variant === "scored" };
      const verdict = await reachVerdict(parts, order, signal);
      return {
        queue: VERDICT_QUEUE,
        async complete(transaction) {
          const { document } = await store.append(verdict, transaction);
          return { status: 200, body: Buffer.from(document), location: verdictPath(id) };
        },
      };
    },
  };
}

async function admit(
  { deals, tiers, ownWallets }: ArbiterParts,
  request: VerdictRequest,
  variant: Variant,
): Promise<Intake<VerdictRequest>> {
  const payment = escrowPayment(request);
  const known = payment === null ? null : await deals.parties(payment).catch(() => "unavailable" as const);
  if (known === "unavailable")
    return { unavailable: "The parties to this deal cannot currently be read from the chain." };
  const parties = known ?? request.parties;
  if (known !== null && request.parties !== null && !areSame(known, request.parties))
    return refused("parties", "the escrow contract names different parties for this payment");
  if (parties !== null && [parties.payer, parties.payee].some((party) => ownWallets.includes(party)))
    return refused("deal_ref", NOT_NEUTRAL);
  if (variant === "scored") {
    if (parties === null)
      return refused("parties", "expected {payer, payee}, or a deal_ref that names a payment in our escrow");
    if (!(await tiers.ready(parties))) return { unavailable: "Scores are temporarily unavailable." };
  }
  return { input: { ...request, parties } };
}

const refused = (path: string, message: string) => ({ refused: [{ path, message, rule: 7 }] });

const areSame = (one: Parties, other: Parties): boolean => one.payer === other.payer && one.payee === other.payee;
