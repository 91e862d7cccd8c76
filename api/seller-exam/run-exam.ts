import { type ExamReport, examine, examinePassively } from "../../packages/seller-check/src/exam/examine.ts";
import { ExaminersFault } from "../../packages/seller-check/src/exam/examiners-fault.ts";
import type { Ledger } from "../../packages/seller-check/src/exam/ledger.ts";
import type { Payer } from "../../packages/seller-check/src/exam/payment.ts";
import type { Address } from "../kernel/wallet.ts";
import { evidenceDigest, evidenceOf, keptChecks } from "./evidence.ts";
import type { ExamStore, NewResult } from "./exam-store.ts";
import { guardedPayer } from "./guarded-payer.ts";
import type { ExamAccount, ExamWork, StoredSignature, TakenExam, Visitor } from "./ports.ts";
import { EXAM_ASSET, EXAM_NETWORK, MOST_OPEN, MOST_RUNS, PAYMENTS_A_RUN } from "./products.ts";
import { type ChainSettlement, type ExamMode, type ExamOrder, VALID_DAYS } from "./record.ts";
import { payBack, type RefundParts } from "./refund.ts";
import { type StandingParts, stillSigned } from "./signed-consent.ts";
import { readsToken } from "./take-order.ts";

export interface RunnerParts {
  readonly store: Pick<ExamStore, "complete" | "get">;
  readonly work: ExamWork;
  readonly visitor: Visitor;
  readonly ledger: Ledger;
  readonly payer: Payer;
  readonly account: ExamAccount;
  readonly refunds: Pick<RefundParts, "send">;
  /** What the payee's contract says of a signature. */
  readonly word: StandingParts["word"];
  readonly baseUrl: string;
  /** What exams may spend in 24 hours, in atomic units. */
  readonly daily: bigint;
  readonly now: () => Date;
  readonly sleep: (ms: number) => Promise<void>;
  /** Repeats the work at an interval in milliseconds until the returned function is called. */
  readonly every: (ms: number, work: () => void) => () => void;
  readonly log: { warn(facts: object, message: string): void };
}

export interface ExamRunner {
  /** Begins the exams that are due, up to what this process holds at once. @returns how many it began */
  runDue(): Promise<number>;
  /** Resolves once those that run have ended. */
  idle(): Promise<void>;
}

const HEARTBEAT_MS = 10_000;
/** How long a seller may keep one run waiting, all its answers together. */
const SELLER_MS = 100_000;
/** From then on the chain is not waited for any longer. */
const RUN_MS = 150_000;
/** How long after a payment has expired, by the chain's clock, it may be shown. */
const SHOWN_AFTER_SECONDS = 60n;
const LONGEST_PAUSE_SECONDS = 60;
/** After so long an exam that something of ours keeps from being held is given up, and paid back. */
const GIVEN_UP_AFTER_MS = 30 * 60_000;
const REFUND_AGAIN_SECONDS = 30;

export function createExamRunner(parts: RunnerParts): ExamRunner {
  const running = new Set<Promise<void>>();
  return {
    async runDue() {
      let begun = 0;
      while (running.size < MOST_OPEN) {
        const taken = await parts.work.take();
        if (taken === null) break;
        const run = runOne(parts, taken).finally(() => running.delete(run));
        running.add(run);
        begun += 1;
      }
      return begun;
    },
    idle: async () => void (await Promise.allSettled([...running])),
  };
}

/** One try. What is no fact about the seller, such as an error of our node, ends it without a result. */
async function runOne(parts: RunnerParts, taken: TakenExam): Promise<void> {
  const { work, every } = parts;
  const lost = new AbortController();
  const end = every(HEARTBEAT_MS, () => {
    work.keep(taken).then(
      (isHeld) => isHeld || lost.abort(new Error("another process has taken the exam")),
      () => undefined,
    );
  });
  try {
    const ended = await parts.store.get(taken.order.id);
    if (ended?.result != null) await refund(parts, taken);
    else await parts.store.complete(taken.order.id, taken.run, await attempt(parts, taken, lost.signal));
  } catch (error) {
    await failed(parts, taken, error).catch(() => undefined);
  } finally {
    end();
  }
}

/** An exam that was given up stays under work until its buyer has the money. */
async function refund({ work, refunds, ledger, account, now }: RunnerParts, taken: TakenExam): Promise<void> {
  const isPaid = await payBack({ ...refunds, ledger, from: account.address, now }, taken.order);
  await (isPaid ? work.end(taken) : work.putBack(taken, REFUND_AGAIN_SECONDS));
}

/** It is tried again, unless that would not help. Only what is known to be ours is paid back: a seller may cause the rest. */
async function failed(parts: RunnerParts, taken: TakenExam, error: unknown): Promise<void> {
  const { work, store, log, now } = parts;
  const { order, run, takes } = taken;
  log.warn({ err: error, exam: order.id }, "a run of an exam did not come to its end");
  const again = () => work.putBack(taken, Math.min(2 ** takes, LONGEST_PAUSE_SECONDS));
  if (!(error instanceof ExaminersFault)) return again();
  const runs = runsOf(await work.signatures(order.id).catch(() => []));
  if (runs < MOST_RUNS && now().getTime() - order.orderedAt.getTime() < GIVEN_UP_AFTER_MS) return again();
  await store.complete(order.id, run, interrupted(parts, { runs, beganAt: now(), note: OURS, owesRefund: true }));
}

const runsOf = (signatures: readonly StoredSignature[]): number => new Set(signatures.map(({ run }) => run)).size;

async function attempt(parts: RunnerParts, taken: TakenExam, lost: AbortSignal): Promise<NewResult> {
  const { order, run } = taken;
  const runs = runsOf(await parts.work.signatures(order.id));
  const beganAt = parts.now();
  if (runs >= MOST_RUNS) return interrupted(parts, { runs, beganAt, note: INTERRUPTED, owesRefund: false });
  if (order.mode === "paid" && !(await affordable(parts, order)))
    throw new ExaminersFault("the account that exams pay from, or the day's ceiling, does not suffice at the moment");
  const unpublished = await whyUnpublished(parts, order, lost);
  const mode = unpublished === null ? "paid" : "passive";
  const report = await hold(parts, taken, { mode, endsAt: beganAt.getTime() + RUN_MS, lost });
  const settlements = settlementsOf(report, parts.payer.address.toLowerCase() as Address);
  const signed = (await parts.work.signatures(order.id)).filter((one) => one.run === run);
  const isSpent = await overFor(parts, signed);
  return complete({ report, isSpent, settlements, unpublished, runs: runs + 1, beganAt, endedAt: parts.now() });
}

async function affordable({ work, account, daily }: RunnerParts, { amount }: ExamOrder): Promise<boolean> {
  const [{ signed }, balance] = await Promise.all([work.commitments(), account.balance()]);
  const needed = PAYMENTS_A_RUN * amount + 1n;
  return needed <= balance && signed + needed <= daily;
}

interface Bounds {
  readonly mode: ExamMode;
  readonly endsAt: number;
  readonly lost: AbortSignal;
}

async function hold(parts: RunnerParts, taken: TakenExam, { mode, endsAt, lost }: Bounds): Promise<ExamReport> {
  const { visitor, ledger, payer, sleep, work } = parts;
  const { order } = taken;
  const { url, method, body, contentType, amount, payTo } = order;
  const other = order.other === null ? null : { url: order.other, method, body };
  const resource = { url, method, body, contentType };
  const payable = { network: EXAM_NETWORK, asset: EXAM_ASSET, ceiling: amount, payTo };
  const visiting = {
    transport: visitor.visit(SELLER_MS, lost),
    ledger,
    payer: guardedPayer(payer, { work, taken }),
    sleep,
    endsAt,
  };
  return mode === "passive"
    ? examinePassively({ resource, payable }, visiting)
    : examine({ resource, payable, other }, visiting);
}

/** Which of a run's authorizations nobody can submit any more, by the chain's own clock. */
async function overFor(
  { ledger, payer }: RunnerParts,
  signed: readonly StoredSignature[],
): Promise<(nonce: string) => boolean> {
  if (signed.length === 0) return () => false;
  const nonces = signed.map(({ nonce }) => nonce);
  const { time, used } = await ledger.read({ asset: EXAM_ASSET, from: payer.address, nonces });
  const isOver = ({ nonce, validAfter, validBefore }: StoredSignature) =>
    used.has(nonce) || validBefore <= validAfter + 1n || validBefore + SHOWN_AFTER_SECONDS <= BigInt(time);
  const over = new Set<string>(signed.filter(isOver).map(({ nonce }) => nonce));
  return (nonce) => over.has(nonce);
}

/** In the order of their blocks. */
const settlementsOf = ({ settled }: ExamReport, from: Address): readonly ChainSettlement[] =>
  [...settled]
    .map(([nonce, { transaction, block, to, value }]) => ({
      ...{ nonce, transaction, block: Number(block), from, to: to.toLowerCase() as Address, value },
    }))
    .sort((one, other) => one.block - other.block);

const PASSIVE = "Nobody proved control of the origin, so only unpaid requests were sent and nothing is certified.";
const WITHDRAWN =
  "The consent no longer stood when the exam began, so only unpaid requests were sent and nothing is certified.";

/**
 * Why the result will not be found by its origin; null if it will. Asked before anything is sent: a seller who could
 * withdraw its consent after that would keep every FAIL unpublished.
 */
async function whyUnpublished(
  parts: RunnerParts,
  { consent, origin, payTo }: ExamOrder,
  lost: AbortSignal,
): Promise<string | null> {
  const { visitor, baseUrl, now } = parts;
  if (consent === null) return PASSIVE;
  if (consent.kind === "signature") {
    const isInTime = Date.parse(consent.expires) > now().getTime();
    return isInTime && (await stillSigned({ payTo, ...consent }, parts)) ? null : WITHDRAWN;
  }
  const transport = visitor.visit(SELLER_MS, lost);
  const stands = await readsToken(transport, { host: new URL(baseUrl).host, origin, payTo });
  return stands ? null : WITHDRAWN;
}

interface Held {
  readonly report: ExamReport;
  readonly isSpent: (nonce: string) => boolean;
  readonly settlements: readonly ChainSettlement[];
  readonly unpublished: string | null;
  readonly runs: number;
  readonly beganAt: Date;
  readonly endedAt: Date;
}

function complete({ report, isSpent, settlements, unpublished, endedAt, ...run }: Held): NewResult {
  const evidence = evidenceOf({ exchanges: report.exchanges, settlements }, isSpent);
  const isPublic = unpublished === null;
  return {
    ...run,
    outcome: "complete",
    level: report.level,
    isPublic,
    note: unpublished,
    checks: keptChecks(report.results),
    evidence,
    evidenceSha256: evidenceDigest(evidence),
    spent: report.spent,
    settlements,
    endedAt,
    validUntil: isPublic ? new Date(endedAt.getTime() + VALID_DAYS * 86_400_000) : null,
  };
}

const INTERRUPTED =
  "Payments were signed twice, and both times something of ours broke before the end. Nothing is said about the seller.";
const OURS =
  "Our chain or our account kept this exam from being held. Nothing is said about the seller, and the buyer gets back what it cost.";

interface Given {
  readonly runs: number;
  readonly beganAt: Date;
  readonly note: string;
  readonly owesRefund: boolean;
}

/** Nothing was seen to its end, so there is nothing to show but the end itself. */
function interrupted({ now }: RunnerParts, { runs, beganAt, note, owesRefund }: Given): NewResult {
  const evidence = evidenceOf({ exchanges: [], settlements: [] }, () => false);
  return {
    outcome: "interrupted",
    level: null,
    isPublic: false,
    note,
    checks: [],
    evidence,
    evidenceSha256: evidenceDigest(evidence),
    spent: null,
    settlements: [],
    runs,
    beganAt,
    endedAt: now(),
    validUntil: null,
    owesRefund,
  };
}
