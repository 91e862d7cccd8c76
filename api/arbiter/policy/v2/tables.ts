import type { FetchLimits } from "../../fetcher.ts";
import type { PolicyCategory } from "../policy.ts";

/** Without redirects: one that answers for another host does not speak for this one. */
export const DID_LIMITS_V2: FetchLimits = {
  deadlineMs: 8_000,
  maxRedirects: 0,
  maxBodyBytes: 64 * 1024,
  maxCodings: 0,
};

/** Of any text in a signed offer or receipt, in UTF-16 code units. */
export const MAX_SIGNED_LENGTH_V2 = 8_192;

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
        "Signed by the resource's seller: a JWS by a key in the DID document of the URL's own host (did:web, Ed25519 or P-256), or EIP-712 by the account that payTo names.",
      result: "true",
    },
    {
      condition: "offer",
      observed:
        "A JWS with a key of another host, or with more in its header than alg, kid and typ, as jwk; a document that cannot be read through the guarded fetch, or does not list the key; a signature that does not hold; EIP-712 by anybody but payTo, or by a contract.",
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
        "The transfer went, in place of the offer's payTo, to an escrow: a collector of base/commerce-payments, or an escrow contract of this service. It is a hold under another scheme that the same URL may offer.",
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
