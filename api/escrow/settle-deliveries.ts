import { evaluate } from "../../packages/escrow/src/rules.ts";
import type { EscrowContract } from "../payments/index.ts";
import type { EscrowLimits } from "../platform/config/values.ts";
import type { FieldError } from "../platform/http/schema.ts";
import type { Signer } from "../platform/signing/document.ts";
import type { Hex } from "../platform/wallet.ts";
import { type Carrying, type CarryingParts, createCarrying } from "./carry-outcomes.ts";
import type { EscrowChain, HoldState } from "./chain.ts";
import { type ContestParts, type Contests, createContests } from "./contest/answer-contests.ts";
import { closesAt, promisedBy, type WindowRefusal, windowOf } from "./contest/conditions.ts";
import type { ContestWindow } from "./contest/store.ts";
import { decodeContent } from "./decode-content.ts";
import {
  type Delivery,
  deliveryDigest,
  deliveryOf,
  type Forward,
  type StatedContest,
  sha256,
  signedOf,
} from "./delivery.ts";
import { type Ambiguous, holdsNamed, namedIn, signedAmong, type Terms } from "./find-hold.ts";
import type { EscrowIndex } from "./index-store.ts";
import { gasCharged, type Hold, OUTCOME_GAS } from "./payment.ts";
import { type Answered, type Evaluation, evaluationPath, evaluationRecord, recordHash } from "./record.ts";
import type { Decided, EscrowStore } from "./store.ts";

/** Overdue holds checked in one pass. */
const PAGE = 1_024;
/**
 * Half of the day's gas is reserved for holds of at least this amount, in atomic USDC, so that dust cannot use it up.
 */
const WORTHWHILE = 1_000_000n;

interface KeeperParts {
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly index: Pick<EscrowIndex, "overdue">;
  readonly limits: EscrowLimits;
  readonly log: CarryingParts["log"];
}

/**
 * Creates the keeper that refunds holds not decided within 30 minutes by the chain's clock, the most valuable of a page
 * first, within the day's budget of gas. Anyone may refund the rest. Each pass continues where the last one ended, so
 * that holds that stay overdue do not hide others. Returns the number of holds it took.
 */
function createKeeper({ store, chain, index, limits, log }: KeeperParts): () => Promise<number> {
  let after: Hold | null = null;
  const mayCost = ({ info }: Hold) => (info.maxAmount < WORTHWHILE ? limits.keeperGas / 2n : limits.keeperGas);
  return async () => {
    const page: readonly Hold[] = (await index.overdue(await chain.time(), PAGE, after)) ?? [];
    after = page.length < PAGE ? null : (page.at(-1) ?? null);
    const due = page.filter(({ info }) => info.maxAmount >= limits.minimum);
    let [taken, left] = [0, 0];
    for (const hold of due.toSorted(byValue)) {
      const became = await store.timeOut(hold, { gas: OUTCOME_GAS, most: mayCost(hold) });
      if (became === "stored") taken++;
      if (became === "spent") left++;
    }
    if (left > 0)
      log.warn({ holds: left }, "the day's gas for overdue holds is spent, but their buyers can refund them");
    return taken;
  };
}

const byValue = ({ info: one }: Hold, { info: other }: Hold): number =>
  one.maxAmount < other.maxAmount ? 1 : one.maxAmount > other.maxAmount ? -1 : 0;

/** The time that a release needs to be mined. A later one would revert, and its payment would never end. */
const RELEASE_WITHIN_SECONDS = 60;

interface EscrowParts extends CarryingParts, KeeperParts, ContestParts {
  readonly contracts: readonly EscrowContract[];
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly log: CarryingParts["log"];
  readonly signer: Signer;
  readonly baseUrl: string;
  /** The service's accounts, in lowercase. */
  readonly ownWallets: readonly string[];
  readonly now: () => Date;
}

/** The record of a refund that does not count against the merchant: the index counts only refunds with a record. */
const NO_RECORD: Hex = `0x${"00".repeat(32)}`;

/** The reasons a forwarded delivery is not evaluated. No money moves. */
export type Refusal =
  | "unknown_payment"
  | "not_signed"
  | "wrong_signer"
  | "already_refunded"
  | "expired"
  | "below_minimum"
  | "gas_spent"
  | "too_late_for_window"
  | "other_delivery"
  | WindowRefusal;

/** Conditions of an offer that the arbiter's policy does not accept, so they could not be contested. */
interface RefusedConditions {
  readonly refused: "conditions";
  readonly errors: readonly FieldError[];
}

export interface Escrow extends Carrying, Contests {
  /** Evaluates a merchant's delivery once. The first evaluation of a payment is final, and repeats get the same one. */
  verify(forward: Forward): Promise<Answered | { readonly refused: Refusal } | RefusedConditions | Ambiguous>;
  evaluation(payment: Hex): Promise<Answered | null>;
  /** Refunds holds that were not decided within 30 minutes. Returns the number of holds taken. */
  refundOverdue(): Promise<number>;
}

export function createEscrow(parts: EscrowParts): Escrow {
  const { store, chain } = parts;
  return {
    ...createCarrying(parts),
    ...createContests(parts),
    refundOverdue: createKeeper(parts),

    async verify(forward) {
      // An unsigned forward does not cause a read of the chain.
      if (forward.signature === undefined) return { refused: "not_signed" };
      const { signature } = forward;
      const delivery = deliveryOf(forward);
      const digestOf = (hold: Terms) => deliveryDigest(hold, delivery);
      // Terms in the body are checked before anything is looked up.
      const named = namedIn(parts, forward);
      const isWrongSigner = named !== null && !(await chain.isSigned(named.info.receiver, digestOf(named), signature));
      if (isWrongSigner) return { refused: "wrong_signer" };
      const holds = await holdsNamed(parts, forward);
      if (holds.length === 0) return { refused: "unknown_payment" };
      const [hold = null] = named !== null ? holds : [await signedAmong(parts, holds, { signature, digestOf })];
      if (hold === null) return { refused: "wrong_signer" };
      if ("refused" in hold) return hold;
      const contest = windowOf(hold.info, delivery);
      if (contest !== null && "refused" in contest) return contest;
      const known = decidedBy(await store.decided(hold.id));
      if (known === "the clock") return { refused: "already_refunded" };
      if (known !== null) return repeated(parts, known, delivery);
      return decide(parts, hold, { delivery, signature, contest });
    },

    async evaluation(payment) {
      const known = decidedBy(await store.decided(payment));
      return known === null || known === "the clock" ? null : answered(parts, known);
    },
  };
}

interface Evaluated extends Decided {
  readonly evaluation: Evaluation;
}

function decidedBy({ evaluation, task }: Decided): Evaluated | "the clock" | null {
  if (evaluation !== null) return { evaluation, task };
  return task === null ? null : "the clock";
}

async function answered({ contests }: EscrowParts, { evaluation, task }: Evaluated): Promise<Answered> {
  // Only the answer to a contest changes the decision; the clock and strangers change the outcome that is found.
  const isChanged = task !== null && task.decision !== evaluation.decision;
  const contest = isChanged ? ((await contests.contest(evaluation.payment))?.answer ?? null) : null;
  const pending = { evaluation, contest, status: "pending", transaction: null } as const;
  if (task === null || task.state === "open") return pending;
  // Anyone may have refunded before the release was mined. Until that is final, it may still be undone.
  if (task.state === "mined" && task.found !== task.decision) return pending;
  return { evaluation, contest, status: OUTCOMES[task.decision], transaction: task.transaction };
}

/**
 * Returns the same evaluation for the same delivery. With a window, any other delivery is refused, because the payer
 * could use it against the merchant.
 */
async function repeated(parts: EscrowParts, known: Evaluated, delivery: Delivery) {
  if (delivery.contest !== null) {
    const { delivery: first } = JSON.parse(known.evaluation.document) as {
      delivery: { status: number; body_sha256: Hex };
    };
    const isSame = first.status === delivery.status && first.body_sha256 === sha256(delivery.body);
    if (!isSame) return { refused: "other_delivery" } as const;
  }
  return answered(parts, known);
}

interface Signed {
  readonly delivery: Delivery;
  readonly signature: Hex;
  readonly contest: StatedContest | null;
}

async function decide(
  parts: EscrowParts,
  hold: Hold,
  { delivery, signature, contest }: Signed,
): Promise<Answered | { readonly refused: Refusal } | RefusedConditions> {
  const { store, limits } = parts;
  if (hold.info.maxAmount < limits.minimum) return { refused: "below_minimum" };
  const state = await stateOf(parts, hold);
  if (!("refused" in state)) {
    const { status, contentType } = delivery;
    const content = await decodeContent(delivery);
    const rule = evaluate({ status, contentType, body: content });
    const window = rule.decision === "release" ? opened(parts, { ...state, hold, delivery, content, contest }) : null;
    if (window !== null && "refused" in window) return window;
    // The signature that a merchant's contract gave its buyer is judged at this block, so this one is, too.
    if (window !== null && !(await isMerchants(parts, hold, { delivery, signature, block: state.block })))
      return { refused: "wrong_signer" };
    const evaluation = await signed(parts, { hold, delivery, rule, window });
    const charged = { decision: evaluation.decision, isContestable: window !== null };
    const cost = { gas: gasCharged(charged, hold.info.maxAmount), most: limits.payerGas };
    const recordOnChain = rule.counts ? evaluation.record : NO_RECORD;
    const became = await store.decide(hold, evaluation, { ...cost, recordOnChain, window });
    if (became === "stored") return { evaluation, contest: null, status: "pending", transaction: null };
    if (became === "spent") return { refused: "gas_spent" };
  }
  // A concurrent request may have decided, or even ended, the hold. This request then has the same evaluation.
  const first = decidedBy(await store.decided(hold.id));
  if (first !== null && first !== "the clock") return repeated(parts, first, delivery);
  return "refused" in state ? state : { refused: "already_refunded" };
}

interface Opening extends Pick<HoldState, "time" | "refundableFrom" | "block"> {
  readonly hold: Hold;
  readonly delivery: Delivery;
  /** The body, decoded. */
  readonly content: Uint8Array | null;
  readonly contest: StatedContest | null;
}

/** Returns the window that opens with a good delivery, or null if the payer has none. */
function opened(
  { claims }: EscrowParts,
  { hold, delivery, content, contest, ...state }: Opening,
): ContestWindow | null | { readonly refused: "too_late_for_window" } | RefusedConditions {
  if (contest === null) return null;
  const { seconds, conditions } = contest;
  const until = closesAt(state, seconds);
  if (until === null || until + RELEASE_WITHIN_SECONDS >= hold.info.authorizationExpiry)
    return { refused: "too_late_for_window" };
  const promised = promisedBy(claims, conditions, { ...delivery, content });
  if ("wrong" in promised) return { refused: "conditions", errors: promised.wrong };
  return { seconds, until, conditions, promised, delivered: signedOf(delivery), block: state.block };
}

const isMerchants = (
  { chain }: EscrowParts,
  hold: Hold,
  { delivery, signature, block }: Pick<Signed, "delivery" | "signature"> & Pick<HoldState, "block">,
): Promise<boolean> =>
  chain.isSignedAt(block, { signer: hold.info.receiver, digest: deliveryDigest(hold, delivery), signature });

/** Returns the state of a hold without an evaluation, or why a delivery is too late, or too early for this node. */
async function stateOf(
  { chain }: EscrowParts,
  { contract, id, info }: Hold,
): Promise<HoldState | { readonly refused: Refusal }> {
  const state = await chain.state({ contract, payment: id });
  if (state.status === "none") return { refused: "unknown_payment" };
  if (state.status !== "held") return { refused: "already_refunded" };
  return state.time + RELEASE_WITHIN_SECONDS >= info.authorizationExpiry ? { refused: "expired" } : state;
}

async function signed(
  { signer, baseUrl, ownWallets, now }: EscrowParts,
  found: Parameters<typeof evaluationRecord>[0],
): Promise<Evaluation> {
  const at = now();
  const url = `${baseUrl}${evaluationPath(found.hold.id)}`;
  const document = await signer.signAsText(
    evaluationRecord(found, { issuer: signer.issuer, url, now: at, ownWallets }),
    at,
  );
  return {
    payment: found.hold.id,
    decision: found.rule.decision,
    rule: found.rule.id,
    record: recordHash(document),
    document,
  };
}

const OUTCOMES = { release: "released", refund: "refunded" } as const;
