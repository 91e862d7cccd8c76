import type { Rule } from "./rules.ts";

/** The rules for settlement in batches, each with the world in which its absence shows. */
export const BATCH_RULES: readonly Rule[] = [
  {
    rule: "an authorization is a member of one transaction",
    world: "batchRace",
    breaks: 9,
    without: { off: "one-member" },
  },
  {
    rule: "of one transaction, whichever key sends it",
    world: "batchKeys",
    breaks: 9,
    without: { off: "member-of-any-key" },
  },
  {
    rule: "a batch carries its members only",
    world: "batchPair",
    breaks: 9,
    without: { off: "only-members-are-carried" },
  },
  {
    rule: "what enters a batch is joined to its process's lease",
    world: "batchLost",
    breaks: 1,
    without: { off: "joined-to-its-lease" },
  },
  {
    rule: "a run that goes on leaves nothing in the queue",
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
    rule: "any process broadcasts what is stored",
    world: "batchRace",
    breaks: 4,
    without: { off: "stored-is-broadcast" },
  },
  {
    rule: "what is mined keeps its members",
    world: "batchRace",
    breaks: 9,
    without: { off: "freed-when-lost" },
  },
  {
    rule: "members are free when a final block has their nonce",
    world: "batchLost",
    breaks: 9,
    without: { off: "lost-at-a-final-block" },
  },
  {
    rule: "what counts as lost was looked for twice",
    world: "batchFees",
    breaks: 9,
    without: { off: "lost-is-looked-for-twice" },
  },
  {
    rule: "a replaced transaction is looked for under each hash",
    world: "batchFees",
    breaks: 9,
    without: { off: "any-hash-is-looked-for" },
  },
  {
    rule: "a failure counts only while its block stands",
    world: "batchReorg",
    breaks: 1,
    without: { off: "mask-of-a-standing-block" },
  },
  {
    rule: "a failed member counts only where its block leaves it unused",
    world: "batchStranger",
    breaks: 1,
    without: { off: "failure-at-its-block" },
  },
  {
    rule: "a hold that a stranger has made is no failure",
    world: "batchHolds",
    breaks: 1,
    without: { off: "failure-at-its-block" },
  },
  {
    rule: "what a hold buys is delivered once the hold is stored",
    world: "batchHolds",
    breaks: 11,
    without: { off: "settled-before-others-notice" },
  },
  {
    rule: "what is turned away is in no transaction",
    world: "batchTime",
    breaks: 1,
    without: { off: "turned-away-is-not-carried" },
  },
  { rule: "only what fails alone is refused", world: "batch", breaks: 7, without: { off: "refused-alone" } },
  {
    rule: "a look that is shared begins after it was asked for",
    world: "reorgAlone",
    breaks: 2,
    without: { off: "look-begins-afterwards" },
  },
];
