import type { Rule } from "./rules.ts";

/** The rules for settlement in batches, each with a world in which a promise breaks without it. */
export const BATCH_RULES: readonly Rule[] = [
  {
    rule: "an authorization is a member of one transaction",
    world: "batchRace",
    breaks: 9,
    without: { off: "one-member" },
  },
  {
    rule: "an authorization is a member of one transaction of any key",
    world: "batchKeys",
    breaks: 9,
    without: { off: "member-of-any-key" },
  },
  {
    rule: "a batch carries only its members",
    world: "batchPair",
    breaks: 9,
    without: { off: "only-members-are-carried" },
  },
  {
    rule: "a payment enters a batch only under a current lease",
    world: "batchLost",
    breaks: 1,
    without: { off: "joined-to-its-lease" },
  },
  {
    rule: "a run that continues withdraws its queued payment",
    world: "batchLost",
    breaks: 1,
    without: { off: "withdrawn" },
  },
  {
    rule: "a batch is broadcast after its commit is acknowledged",
    world: "batchRace",
    breaks: 9,
    without: { off: "committed-before-broadcast" },
  },
  {
    rule: "any process broadcasts a stored batch",
    world: "batchRace",
    breaks: 4,
    without: { off: "stored-is-broadcast" },
  },
  {
    rule: "a mined batch keeps its members",
    world: "batchRace",
    breaks: 9,
    without: { off: "freed-when-lost" },
  },
  {
    rule: "members are freed once their nonce is finally taken",
    world: "batchLost",
    breaks: 9,
    without: { off: "lost-at-a-final-block" },
  },
  {
    rule: "a batch counts as lost only after a second lookup",
    world: "batchFees",
    breaks: 9,
    without: { off: "lost-is-looked-for-twice" },
  },
  {
    rule: "a replaced transaction is looked up under each hash",
    world: "batchFees",
    breaks: 9,
    without: { off: "any-hash-is-looked-for" },
  },
  {
    rule: "a failure counts only while its block is on the chain",
    world: "batchReorg",
    breaks: 1,
    without: { off: "failure-in-a-current-block" },
  },
  {
    rule: "a failed member counts only if it is unused at its block",
    world: "batchStranger",
    breaks: 1,
    without: { off: "failure-at-its-block" },
  },
  {
    rule: "a hold made by a stranger is not a failure",
    world: "batchHolds",
    breaks: 1,
    without: { off: "failure-at-its-block" },
  },
  {
    rule: "a hold's purchase is delivered once the hold is stored",
    world: "batchHolds",
    breaks: 11,
    without: { off: "settled-before-others-notice" },
  },
  {
    rule: "a payment without a slot is in no transaction",
    world: "batchTime",
    breaks: 1,
    without: { off: "turned-away-is-not-carried" },
  },
  { rule: "only a payment that fails alone is refused", world: "batch", breaks: 7, without: { off: "refused-alone" } },
  {
    rule: "a shared lookup begins after it is requested",
    world: "reorgAlone",
    breaks: 2,
    without: { off: "look-begins-afterwards" },
  },
];
