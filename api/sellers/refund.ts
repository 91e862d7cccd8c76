import { createHash } from "node:crypto";
import type { Authorization } from "../../packages/escrow/src/authorization.ts";
import { factsOf } from "../../packages/seller-check/src/exam/chain-facts.ts";
import type { Ledger, Settled } from "../../packages/seller-check/src/exam/ledger.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import { evidenceDigest, evidenceOf } from "./evidence.ts";
import type { ExamAccount } from "./exam-account.ts";
import type { NewResult } from "./exam-store.ts";
import type { ExamWork, TakenExam } from "./exam-work-store.ts";
import type { WatchParts } from "./payment-end.ts";
import { EXAM_ASSET, EXAM_PRICE, QUOTE_MINUTES } from "./products.ts";
import type { ExamOrder } from "./record.ts";

export interface RefundParts {
  readonly work: Pick<ExamWork, "purchaseEnd" | "putBack" | "end" | "reservedBefore">;
  readonly account: Pick<ExamAccount, "balance">;
  readonly ledger: Ledger;
  readonly finalView: WatchParts["finalView"];
  /** The account that pays in exams. */
  readonly from: Address;
  /**
   * Signs and submits a payment.
   * @returns why USDC would refuse it, or null if it would not
   */
  readonly send: (authorization: Authorization) => Promise<string | null>;
  readonly now: () => Date;
}

/** An attempt can settle during two windows at most, and attempts within one window use the same authorization. */
const WINDOW_SECONDS = 3_600;
const AGAIN_SECONDS = 30;

/**
 * Returns the nonce of every attempt to pay an exam back, so that USDC pays it only once, whatever our records contain.
 */
export const refundNonce = (id: string): Hex =>
  `0x${createHash("sha256").update(`seller exam refund|${id}`).digest("hex")}`;

/**
 * Pays the price of an exam back to its buyer after a failure on our side ended the exam. Retries until the refund is
 * final and the payment that bought the exam is too: a reorganization may undo either, and a buyer who never paid must
 * not be paid back.
 * @throws Error if there is not enough money, or the chain cannot be read
 */
export async function refund(parts: RefundParts, taken: TakenExam): Promise<void> {
  const { work } = parts;
  const end = await work.purchaseEnd(taken.order);
  if (end === "reversed") return work.end(taken, null);
  const paid = end === null ? null : await payBack(parts, taken);
  if (paid === null) return work.putBack(taken, AGAIN_SECONDS);
  await work.end(taken, { transaction: paid.transaction, block: Number(paid.block) });
}

/** @returns the refund's settlement in a final block, or null to retry */
async function payBack(parts: RefundParts, taken: TakenExam): Promise<Settled | null> {
  const { ledger, send, finalView, now } = parts;
  const { id, payment, settlement }: ExamOrder = taken.order;
  const from = parts.from.toLowerCase() as Address;
  const nonce = refundNonce(id);
  const asked = { asset: EXAM_ASSET, from, nonces: [nonce], since: BigInt(settlement.block), notBefore: 0, now: 0 };
  const facts = await factsOf(ledger, asked);
  if (facts === null) return null;
  const paid = facts.settled.get(nonce);
  if (paid !== undefined) return (await finalView([{ payer: from, nonce }])).used.has(nonce) ? paid : null;
  await requireLeft(parts, taken);
  const at = Math.max(await ledger.now(), Math.floor(now().getTime() / 1000));
  const validBefore = BigInt((Math.floor(at / WINDOW_SECONDS) + 2) * WINDOW_SECONDS);
  const refused = await send({ from, to: payment.payer, value: EXAM_PRICE, validAfter: 0n, validBefore, nonce });
  if (refused !== null) throw new Error(`an exam cannot be paid back: ${refused}`);
  return null;
}

/**
 * A refund never takes what an open order can still cost.
 * @throws Error while too little is left
 */
async function requireLeft({ account, work }: RefundParts, taken: TakenExam): Promise<void> {
  const left = (await account.balance()) - (await work.reservedBefore(taken));
  if (left < EXAM_PRICE) throw new Error(`an exam cannot be paid back yet: ${left} atomic units are available`);
}

/** The notes of exams without a result that the buyer, who is the seller, may have caused. They are not paid back. */
const UNPAID_ENDS = {
  broke: "Something broke before the end. The seller was not judged, and nothing is paid back.",
  withdrawn:
    "The line that names the buyer was gone from the origin's file when the exam began, so the seller was not contacted, and nothing is paid back.",
  stale: `The exam began more than ${QUOTE_MINUTES} minutes after its order, and the seller's quote had changed. The seller was not judged, and nothing is paid back.`,
} as const;
const OURS =
  "Our chain, our network, our account or our queue kept this exam from taking place. The seller was not judged, and";
const OWED = {
  refund: `${OURS} the buyer gets back what it cost.`,
  another: `${OURS} it may be taken again.`,
} as const;

interface Given {
  readonly runs: number;
  readonly beganAt: Date;
  readonly endedAt: Date;
  /** The reason for the end, and the debt if a failure on our side caused it. */
  readonly end: keyof typeof OWED | keyof typeof UNPAID_ENDS;
}

const isOwed = (end: Given["end"]): end is keyof typeof OWED => end in OWED;

/** Nothing was completed, so the evidence is empty. */
export function interrupted({ end, ...times }: Given): NewResult {
  const evidence = evidenceOf({ exchanges: [], settlements: [] }, () => false);
  return {
    ...times,
    outcome: "interrupted",
    level: null,
    isPublic: false,
    note: isOwed(end) ? OWED[end] : UNPAID_ENDS[end],
    checks: [],
    evidence,
    evidenceSha256: evidenceDigest(evidence),
    spent: null,
    settlements: [],
    validUntil: null,
    owes: isOwed(end) ? end : undefined,
  };
}
