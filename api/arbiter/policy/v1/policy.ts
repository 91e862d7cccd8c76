import type { Policy, PolicyRule } from "../policy.ts";
import type { PolicyVersion } from "../version.ts";
import { ciStatus } from "./ci-status.ts";
import { httpDelivery } from "./http-delivery.ts";
import { payloadHash } from "./payload-hash.ts";
import { CI_STATUS_V1, decide, HTTP_DELIVERY_V1, PAYLOAD_HASH_V1 } from "./tables.ts";

const RULES: readonly PolicyRule[] = [
  {
    number: 1,
    title: "What is verified",
    text: "There are three categories and no others: http-delivery, payload-hash and ci-status. Only a new version of this policy adds one.",
  },
  {
    number: 2,
    title: "What is refused at intake",
    text: "Judgments of quality or taste; delivery in the real world or outside public networks, such as goods and the work of people; legal disputes and whatever else needs discretion; deliverables behind credentials or private access.",
  },
  {
    number: 3,
    title: "Own evidence only",
    text: "The arbiter gathers its evidence itself. Screenshots, logs and statements that a caller supplies are never accepted as proof.",
  },
  {
    number: 4,
    title: "Conditions fixed beforehand",
    text: "Only conditions that were fixed when the deal was made are verified. Every signed verdict contains conditions_sha256, the SHA-256 of the conditions as they were submitted.",
  },
  {
    number: 5,
    title: "Determinism",
    text: "The same inputs and the same observable state lead to the same verdict. Every verdict lists exactly the facts that were observed.",
  },
  {
    number: 6,
    title: "Public evidence",
    text: "The evidence (statuses, hashes, times, conclusions of CI runs) is stored and public at the verdict's record. The content of a deliverable is not kept beyond what evidences the verdict.",
  },
  {
    number: 7,
    title: "Neutrality",
    text: "The arbiter takes no deal in which the operator of the service, or the wallet that it is paid to, buys or sells. Neither party's certificates or risk score ever change a verdict; the scored variant reports the tiers beside it and does not use them. Where policy and conditions determine no answer, the answer is escalate.",
  },
  {
    number: 8,
    title: "A moment in time",
    text: "A verdict states the evidence at the time of the check. It does not guarantee the deliverable for good.",
  },
  {
    number: 9,
    title: "Corrections",
    text: "A verdict is never edited or deleted. A defect on the arbiter's side leads to a new verdict that supersedes the first and is linked to it cryptographically; both stay public. Within 7 days either party may ask for a review through the contact in /.well-known/security.txt. The only ground is an error of the arbiter, not disagreement with a verdict that was reached correctly. The run after a correction is free.",
  },
  {
    number: 10,
    title: "Fees",
    text: "The fee is not refunded, whichever side the verdict favours.",
  },
  {
    number: 11,
    title: "Liability",
    text: "A verdict attests facts that a machine observed at one moment. It is no legal or financial advice and no warranty. Total liability for a verdict is limited to the fee that was paid for it. The escrow system that asked is alone responsible for what it does with a verdict, an escalate included.",
  },
];

/** Version 1 of the arbiter's policy. Never edited: a change makes a new version. */
export const POLICY_V1: Policy = {
  version: 1,
  effective_date: "2026-11-21",
  status: "machine-verifiable deliverables only",
  role: "Given the specification of a deliverable and evidence that it gathers itself, the arbiter returns a signed verdict. It never holds funds: it attests facts, and the escrow system that asked acts on them.",
  categories: [HTTP_DELIVERY_V1, PAYLOAD_HASH_V1, CI_STATUS_V1],
  decision: [
    { when: "Every condition is true.", verdict: "release" },
    { when: "At least one condition is false.", verdict: "refund" },
    { when: "No condition is false, and at least one is unknown.", verdict: "escalate" },
  ],
  rules: RULES,
};

export const VERSION_1: PolicyVersion = {
  policy: POLICY_V1,
  categories: [httpDelivery, payloadHash, ciStatus],
  decide,
};
