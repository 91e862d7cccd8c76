import { z } from "zod";
import {
  type Payload,
  readStatement,
  readSubmitted,
} from "../../../../packages/verifier/src/offer-receipt/statement.ts";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import type { JsonObject } from "../../../../packages/verifier/src/strict-json.ts";
import {
  factsOf,
  type OfferBreachClaim,
  type OfferBreachEvidence,
  type TransactionFact,
  type TransferFact,
} from "../../../../packages/verifier/src/verdict/v2/evidence.ts";
import { judgeOfferBreach, NETWORKS_V2 } from "../../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import { type Address, parseAddress } from "../../../platform/wallet.ts";
import { bareHost, type GuardSettings, isAllowedOrigin } from "../../../platform/web/target.ts";
import { type Issues, malformed, refuse } from "../../submitted.ts";
import { type Category, type Claimed, category, type Fact, type Observation, type Question } from "../category.ts";
import { conditionsOf } from "../v1/fields.ts";
import { DID_LIMITS_V2, MAX_SIGNED_LENGTH_V2 } from "./tables.ts";

interface Conditions extends OfferBreachClaim {
  /** Who pays for the verdict; null until that wallet has signed. */
  readonly claimant: Address | null;
}

const text = z.string().max(MAX_SIGNED_LENGTH_V2);

/** A signed offer or receipt: what it says is read, and who signed it is not known yet. */
const signed = (kind: "offer" | "receipt", check: (payload: Payload, issues: Issues) => void = () => undefined) =>
  z
    .strictObject({
      format: z.enum(["jws", "eip712"]),
      acceptIndex: z.int().min(0).optional(),
      payload: z.record(z.string(), z.union([text, z.number()])).optional(),
      signature: text,
    })
    .superRefine((given, issues) => {
      try {
        check(readSubmitted(kind, given as JsonObject).payload, issues);
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        malformed(issues, [], error.message);
      }
    });

const offerOf = (settings: GuardSettings) =>
  signed("offer", ({ resourceUrl }, issues) => {
    const url = new URL(resourceUrl);
    if (!isAllowedOrigin(url, settings) && bareHost(url) === settings.ownHost.replace(/\.$/, ""))
      refuse(issues, [], { message: "the service does not arbitrate offers of its own host", rule: 7 });
  });

/** A settlement as x402 names it: the network by CAIP-2, the transaction by its hash. */
const settlement = z
  .strictObject({
    network: z.string().regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/, "expected a network by its CAIP-2 id"),
    transaction: z.string().regex(/^\w{1,128}$/, "expected a transaction hash"),
  })
  .superRefine(({ network, transaction }, issues) => {
    if (network.startsWith("eip155:") && !/^0x[0-9a-f]{64}$/i.test(transaction))
      malformed(issues, ["transaction"], "expected a transaction hash: 0x and 64 hex digits");
  });

const conditions = (settings: GuardSettings) =>
  conditionsOf({ offer: offerOf(settings), receipt: signed("receipt").optional(), settlement }).transform(
    ({ offer, receipt, settlement: named }): Conditions => ({
      offer: offer as JsonObject,
      receipt: (receipt as JsonObject | undefined) ?? null,
      settlement: named,
      claimant: null,
    }),
  );

const payloadOf = (kind: "offer" | "receipt", given: JsonObject): Payload => readStatement(kind, given).payload;

/**
 * The claimant is the wallet that pays for the verdict: its signature is already checked. Somebody else's receipt is
 * refused before anything is charged.
 */
function claimedBy(given: Conditions, claimant: Address): Claimed<Conditions> {
  const refused = (message: string, rule: number) => ({ refused: { path: "conditions.receipt", message, rule } });
  const payer = given.receipt && payloadOf("receipt", given.receipt).payer;
  if (payer !== null && parseAddress(payer) !== claimant)
    return refused(
      `only who paid can claim a breach: expected this verdict's payment from the receipt's payer, but it is from ${claimant}`,
      12,
    );
  const payee = parseAddress(payloadOf("offer", given.offer).payTo);
  if (payee === claimant) return refused("expected an offer of somebody else", 7);
  return { conditions: { ...given, claimant }, parties: payee && { payer: claimant, payee } };
}

function next(given: Conditions, seen: readonly Observation[]): Question | null {
  const { claimant, offer, settlement: named } = given;
  const checked = seen.find((one) => one.source === "signatures");
  if (checked === undefined) return { source: "signatures", claim: claimOf(given), limits: DID_LIMITS_V2 };
  const { signatures } = checked.reading;
  // Without both, no transaction changes the verdict.
  if (claimant === null || signatures.length < 2 || signatures.some(({ reason }) => reason !== "valid")) return null;
  const offered = String(payloadOf("offer", offer).network);
  const networks = Object.hasOwn(NETWORKS_V2, offered) ? [...new Set([named.network, offered])] : [named.network];
  const left = networks.find(
    (network) => !seen.some((one) => one.source === "transaction" && one.asked.network === network),
  );
  if (left === undefined) return null;
  const transaction = named.transaction.toLowerCase();
  return { source: "transaction", asked: { network: left, transaction, from: claimant } };
}

const claimOf = ({ offer, receipt, settlement: named }: Conditions): OfferBreachClaim => ({
  offer,
  receipt,
  settlement: named,
});

function evidenceOf(given: Conditions, seen: readonly Observation[]): OfferBreachEvidence {
  const read = seen.filter((one) => one.source === "transaction");
  return {
    ...claimOf(given),
    claimant: given.claimant ?? "",
    signatures: seen.flatMap((one) => (one.source === "signatures" ? one.reading.signatures : [])),
    transactions: read.map(({ asked: { network, transaction }, reading }): TransactionFact => {
      const place =
        reading.outcome === "final" ? { block: reading.block, time: reading.time } : { block: null, time: null };
      return { fact: "transaction", network, transaction, outcome: reading.outcome, ...place };
    }),
    transfers: read.flatMap(({ asked, reading }) =>
      (reading.outcome === "final" ? reading.transfers : []).map(
        ({ logIndex, asset, to, value, custody }): TransferFact => ({
          fact: "transfer",
          network: asked.network,
          log_index: logIndex,
          asset,
          from: asked.from,
          to,
          value: value.toString(),
          ...(custody && { custody }),
        }),
      ),
    ),
    decidedBy: seen.find((one) => one.source === "decided-before")?.verdict ?? null,
  };
}

/** How the seller's DID document was read, beside what the verdict rests on. */
const documentFacts = (seen: readonly Observation[]): readonly Fact[] =>
  seen.flatMap((one) => {
    if (one.source !== "signatures" || one.reading.document === null) return [];
    const { url, fetched, sha256 } = one.reading.document;
    return [{ fact: "did_document", url, status: fetched.head?.status ?? null, sha256, failure: fetched.failure }];
  });

const OFFER_BREACH: Category<Conditions> = {
  name: "offer-breach",
  conditions,
  next,
  judge: (given, seen) => judgeOfferBreach(evidenceOf(given, seen)).conditions,
  facts: (given, seen) => [...factsOf(evidenceOf(given, seen)), ...documentFacts(seen)],
  claimedBy,
  decides(given, seen) {
    const { transfer } = judgeOfferBreach(evidenceOf(given, seen));
    const transaction = given.settlement.transaction.toLowerCase();
    return transfer && { network: transfer.network, transaction, logIndex: transfer.log_index };
  },
};

export const offerBreach = category(OFFER_BREACH);
