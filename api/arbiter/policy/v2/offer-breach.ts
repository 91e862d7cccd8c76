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
import type { FetchLimits } from "../../../platform/web/guarded-fetch/request.ts";
import { bareHost, type GuardSettings, isAllowedOrigin } from "../../../platform/web/target.ts";
import { type Issues, malformed, refuse } from "../../claim.ts";
import type { Fact } from "../../facts.ts";
import { type Category, type Claimed, category, type Observation, type Question } from "../category.ts";
import { conditionsOf } from "../conditions.ts";
import type { PolicyCategory } from "../policy.ts";

/** Without redirects, because a document on another host does not speak for this one. */
const DID_LIMITS_V2: FetchLimits = {
  deadlineMs: 8_000,
  maxRedirects: 0,
  maxBodyBytes: 64 * 1024,
  maxCodings: 0,
};

/** Limits any text in a signed offer or receipt, in UTF-16 code units. */
const MAX_SIGNED_LENGTH_V2 = 8_192;

export const OFFER_BREACH_V2: PolicyCategory = {
  name: "offer-breach",
  summary:
    "The arbiter checks who signed an x402 offer and its receipt, and reads the payment from a final block. The seller promised the resource at that URL on the terms of the offer until its validUntil; if the seller acknowledges a payment on worse ones, the payer is to have it back. Only the wallet that paid can claim, by paying for the verdict, and a transfer is decided once. Nothing of the claim is private: the verdict publishes the offer and the receipt.",
  conditions: [
    {
      name: "offer",
      required: true,
      means:
        "a signed offer of the x402 extension offer-receipt, version 1: {format, signature} as a JWS, or {format, payload, signature} as EIP-712",
    },
    {
      name: "receipt",
      required: false,
      means: "the signed receipt of the payment, in the same format; without it the verdict is escalate",
    },
    {
      name: "settlement",
      required: true,
      means: "{network, transaction}: the CAIP-2 network and the hash of the transaction that the receipt names",
    },
  ],
  table: [
    {
      condition: "offer",
      observed:
        "Signed by the resource's seller: a JWS by a key in the DID document of the URL's own host, or of a path that the URL is under (did:web; Ed25519, P-256 or secp256k1), or EIP-712 by the account that payTo names.",
      result: "true",
    },
    {
      condition: "offer",
      observed:
        "A JWS with a key of another host or path, or with more in its header than alg, kid and typ, as jwk; a document that cannot be read through the guarded fetch, or does not list the key; a signature that does not hold; EIP-712 by anybody but payTo, or by a contract.",
      result: "unknown",
    },
    {
      condition: "offer",
      observed: "A scheme other than exact, or terms that cannot be compared: no address, no whole amount.",
      result: "unknown",
    },
    {
      condition: "receipt",
      observed:
        "Signed by the offer's signer, in the offer's format, for its URL and network, and it names the transaction.",
      result: "true",
    },
    {
      condition: "receipt",
      observed:
        "No receipt, or one by anybody else, for another URL or network, with another transaction, or with none.",
      result: "unknown",
    },
    { condition: "claimant", observed: "Who pays for the verdict is the receipt's payer.", result: "true" },
    {
      condition: "claimant",
      observed: "There is no receipt. (A claim on somebody else's receipt is refused at intake.)",
      result: "unknown",
    },
    {
      condition: "settlement",
      observed:
        "The transaction is in a final block, with a transfer of the network's USDC by the claimant, whichever call made it: transfer, transferFrom or transferWithAuthorization, alone or among others. Transfers of nothing, and to the payer itself, do not count. If there are several, the one as offered is meant.",
      result: "true",
    },
    {
      condition: "settlement",
      observed:
        "Not found, not final yet, reverted, on a network that the service does not read, or the nodes do not answer or disagree.",
      result: "unknown",
    },
    {
      condition: "settlement",
      observed:
        "No such transfer; several, and none as offered; more than 32; or another verdict has decided the transfer.",
      result: "unknown",
    },
    {
      condition: "settlement",
      observed:
        "The transfer is not as offered, and it went, in place of the offer's payTo, to an address that has code, or that two nodes do not both show without code: it may be a hold under another scheme that the same URL offers. Receipts name no scheme.",
      result: "unknown",
    },
    {
      condition: "settlement",
      observed:
        "The transfer is not as offered, and the payer's EIP-3009 authorization did not make it, as it makes payments by exact: it may be a payment under another scheme, such as upto.",
      result: "unknown",
    },
    { condition: "time", observed: "The block's time is at or before the offer's validUntil.", result: "true" },
    {
      condition: "time",
      observed: "It is later, or before the first day of this version.",
      result: "unknown",
    },
    {
      condition: "network, asset, payee, amount",
      observed: "A row above is unknown, so the terms are not compared.",
      result: "unknown",
    },
    { condition: "network", observed: "The transfer is on the offered network.", result: "true" },
    {
      condition: "network",
      observed: "Offer and receipt name a test network that shows no such transaction, and real USDC was paid.",
      result: "false",
    },
    {
      condition: "network",
      observed:
        "Test money was paid instead of money, the offered network shows the transaction too, or it is not read. Asset, payee and amount are then not compared.",
      result: "unknown",
    },
    { condition: "asset", observed: "USDC is the offered asset.", result: "true" },
    { condition: "asset", observed: "Another asset was offered.", result: "false" },
    { condition: "payee", observed: "The transfer went to the offer's payTo.", result: "true" },
    { condition: "payee", observed: "It went to somebody else.", result: "false" },
    { condition: "amount", observed: "The transfer has the offered amount.", result: "true" },
    { condition: "amount", observed: "It is more.", result: "false" },
    {
      condition: "amount",
      observed: "It is less, which has cost the payer nothing, or another asset was offered.",
      result: "unknown",
    },
  ],
};

interface Conditions extends OfferBreachClaim {
  /** The wallet that pays for the verdict, or null until it has signed. */
  readonly claimant: Address | null;
}

const text = z.string().max(MAX_SIGNED_LENGTH_V2);

/** A signed offer or receipt. Its contents are parsed here; its signer is checked later. */
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
      refuse(issues, [], { message: "the service does not arbitrate offers for its own host", rule: 7 });
  });

/** A settlement in x402 terms: the network's CAIP-2 ID and the transaction's hash. */
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
 * The claimant is the wallet that pays for the verdict, whose signature has been checked. A claim on another wallet's
 * receipt is refused before anything is charged.
 */
function claimedBy(given: Conditions, claimant: Address): Claimed<Conditions> {
  const refused = (message: string, rule: number) => ({ refused: { path: "conditions.receipt", message, rule } });
  const payer = given.receipt && payloadOf("receipt", given.receipt).payer;
  if (payer !== null && parseAddress(payer) !== claimant)
    return refused(
      `only the payer can claim a breach: expected this verdict's payment from the receipt's payer, but it came from ${claimant}`,
      12,
    );
  const payee = parseAddress(payloadOf("offer", given.offer).payTo);
  if (payee === claimant) return refused("expected an offer by a different wallet", 7);
  return { conditions: { ...given, claimant }, parties: payee && { payer: claimant, payee } };
}

function next(given: Conditions, seen: readonly Observation[]): Question | null {
  const { claimant, offer, settlement: named } = given;
  const checked = seen.find((one) => one.type === "signatures");
  if (checked === undefined) return { type: "signatures", claim: claimOf(given), limits: DID_LIMITS_V2 };
  const { signatures } = checked.reading;
  // Without both, no transaction can change the verdict.
  if (claimant === null || signatures.length < 2 || signatures.some(({ reason }) => reason !== "valid")) return null;
  const offered = String(payloadOf("offer", offer).network);
  const networks = Object.hasOwn(NETWORKS_V2, offered) ? [...new Set([named.network, offered])] : [named.network];
  const left = networks.find(
    (network) => !seen.some((one) => one.type === "transaction" && one.asked.network === network),
  );
  if (left === undefined) return null;
  const transaction = named.transaction.toLowerCase();
  return { type: "transaction", asked: { network: left, transaction, from: claimant } };
}

const claimOf = ({ offer, receipt, settlement: named }: Conditions): OfferBreachClaim => ({
  offer,
  receipt,
  settlement: named,
});

function evidenceOf(given: Conditions, seen: readonly Observation[]): OfferBreachEvidence {
  const read = seen.filter((one) => one.type === "transaction");
  return {
    ...claimOf(given),
    claimant: given.claimant ?? "",
    signatures: seen.flatMap((one) => (one.type === "signatures" ? one.reading.signatures : [])),
    transactions: read.map(({ asked: { network, transaction }, reading }): TransactionFact => {
      const place =
        reading.outcome === "final" ? { block: reading.block, time: reading.time } : { block: null, time: null };
      return { fact: "transaction", network, transaction, outcome: reading.outcome, ...place };
    }),
    transfers: read.flatMap(({ asked, reading }) =>
      (reading.outcome === "final" ? reading.transfers : []).map(
        ({ logIndex, asset, to, value, byAuthorization, toHasCode }): TransferFact => ({
          fact: "transfer",
          network: asked.network,
          log_index: logIndex,
          asset,
          from: asked.from,
          to,
          value: value.toString(),
          by_authorization: byAuthorization,
          to_has_code: toHasCode,
        }),
      ),
    ),
    decidedBy: seen.find((one) => one.type === "decided-before")?.verdict ?? null,
  };
}

/** Returns how the seller's DID document was read, which is not part of the evidence that decides. */
const documentFacts = (seen: readonly Observation[]): readonly Fact[] =>
  seen.flatMap((one) => {
    if (one.type !== "signatures" || one.reading.document === null) return [];
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
