import { decideV2, EFFECTIVE_DATE_V2 } from "../../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import type { Policy, PolicyRule } from "../policy.ts";
import { payloadHash } from "../v1/payload-hash.ts";
import { POLICY_V1 } from "../v1/policy.ts";
import { PAYLOAD_HASH_V1 } from "../v1/tables.ts";
import type { PolicyVersion } from "../version.ts";
import { CI_STATUS_V2, ciStatusV2 } from "./ci-status.ts";
import { HTTP_DELIVERY_V2, httpDeliveryV2 } from "./http-delivery.ts";
import { OFFER_BREACH_V2, offerBreach } from "./offer-breach.ts";

/** The rules that version 2 rewords, and its new ones. */
const CHANGED: readonly PolicyRule[] = [
  {
    number: 1,
    title: "What is verified",
    text: "There are four categories and no others: http-delivery, payload-hash, ci-status and offer-breach. Only a new version of this policy adds one.",
  },
  {
    number: 3,
    title: "Own evidence only",
    text: "The arbiter gathers its evidence itself. Screenshots, logs and statements that a caller supplies are never accepted as proof. What the seller itself has signed, an x402 offer or receipt, is the seller's statement: the arbiter checks the signature, and reads the payment from the chain.",
  },
  {
    number: 12,
    title: "Breach of an offer",
    text: "A breach is claimed by the wallet that paid, and by no other: it shows that it is by paying for the verdict. A transfer is decided once; an escalate decides none, so it can be claimed again. An offer binds its signer until its validUntil, at its URL, by itself: the arbiter is shown one offer and does not know of others. A seller that sells different things, or takes different assets or payees, gives each its own URL.",
  },
];

/**
 * Version 2 of the arbiter's policy: version 1 with the category offer-breach, and with different tables for
 * http-delivery and ci-status. Never edited: a change makes a new version.
 */
export const POLICY_V2: Policy = {
  ...POLICY_V1,
  version: 2,
  effective_date: EFFECTIVE_DATE_V2,
  categories: [HTTP_DELIVERY_V2, PAYLOAD_HASH_V1, CI_STATUS_V2, OFFER_BREACH_V2],
  rules: [
    ...POLICY_V1.rules.map((rule) => CHANGED.find(({ number }) => number === rule.number) ?? rule),
    ...CHANGED.filter(({ number }) => POLICY_V1.rules.every((rule) => rule.number !== number)),
  ],
};

/** Adds one category and changes two. Version 1 still decides claims in the fourth. */
export const VERSION_2: PolicyVersion = {
  policy: POLICY_V2,
  categories: [httpDeliveryV2, payloadHash, ciStatusV2, offerBreach],
  unchanged: [payloadHash],
  decide: decideV2,
};
