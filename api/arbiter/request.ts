import { createHash } from "node:crypto";
import { z } from "zod";
import type { PaymentKey } from "../platform/http/route.ts";
import { wallet } from "../platform/http/schema.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import { type Claim, type ClaimSettings, claimSchema, refuse, submitted, unicodeText } from "./claim.ts";
import type { Parties, PartiesSource } from "./parties.ts";

/** A request for a verdict: JSON, so that the journal and the record can store it. */
export interface VerdictRequest extends Claim {
  /** The caller's name for its deal. */
  readonly dealRef: string | null;
  readonly parties: Parties | null;
  /** The wallet that paid for the verdict. */
  readonly claimant?: Address;
  /** Missing if only the claimant names the parties. */
  readonly partiesNamedBy?: PartiesSource;
}

export interface RequestSettings extends ClaimSettings {
  /** The wallets of the service's payee, operator, and arbiter, in lowercase. */
  readonly ownWallets: readonly Address[];
}

const MAX_DEAL_REF = 120;
const MEMBERS = ["category", "conditions", "deal_ref", "parties"];
export const NOT_NEUTRAL = "the service does not arbitrate deals in which it or its payee buys or sells";

/** The members that identify the deal and its parties. */
export const DEAL = z.object({
  deal_ref: unicodeText
    .min(1)
    .max(MAX_DEAL_REF)
    .regex(/^\P{Cc}+$/u, "expected text without control characters")
    .optional(),
  parties: z.strictObject({ payer: wallet, payee: wallet }).optional(),
});

const deal = ({ ownWallets }: RequestSettings) =>
  submitted(3)
    .pipe(z.looseObject(DEAL.shape))
    .superRefine((body, issues) => {
      for (const name of Object.keys(body).filter((key) => !MEMBERS.includes(key)))
        refuse(issues, [name.slice(0, 60)], {
          message: "expected only category, conditions, deal_ref, and parties",
          rule: 3,
        });
      const { payer, payee } = body.parties ?? {};
      if (payer !== undefined && payer === payee)
        refuse(issues, ["parties"], { message: "expected two different wallets", rule: 7 });
      for (const [name, party] of Object.entries({ payer, payee }))
        if (party !== undefined && ownWallets.includes(party))
          refuse(issues, ["parties", name], { message: NOT_NEUTRAL, rule: 7 });
    })
    .transform(({ deal_ref, parties }) => ({ dealRef: deal_ref ?? null, parties: parties ?? null }));

/**
 * Returns the schema of the body of `POST /arbiter/verify`. A custom issue is a refusal (422) whose `params.rule` is
 * the policy's rule; any other is a malformed body (400).
 */
export const requestSchema = (settings: RequestSettings): z.ZodType<VerdictRequest> =>
  z.intersection(claimSchema(settings), deal(settings));

/** Returns the deal reference as an escrow payment ID, or null if it cannot be one. */
export const escrowPayment = ({ dealRef }: VerdictRequest): Hex | null =>
  dealRef !== null && /^0x[0-9a-f]{64}$/i.test(dealRef) ? (dealRef.toLowerCase() as Hex) : null;

const idOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/**
 * Returns 32 hex digits derived from the authorization that bought the verdict, so that a sale yields the same verdict
 * each time it runs.
 */
export const verdictId = ({ network, asset, payer, nonce }: PaymentKey): string =>
  idOf(`verdict|${network}|${asset}|${payer}|${nonce}`);

/** Returns the ID of the only verdict that can supersede another. */
export const correctionId = (id: string): string => idOf(`correction|${id}`);
