import PQueue from "p-queue";
import type { Authorization } from "../../packages/escrow/src/authorization.ts";
import { type ExamReport, examine } from "../../packages/seller-check/src/exam/examine.ts";
import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import type { Ledger } from "../../packages/seller-check/src/exam/ledger.ts";
import { ExaminersFault } from "../../packages/seller-check/src/exam/ledger.ts";
import type { Payer } from "../../packages/seller-check/src/exam/payment.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { isUnder } from "./consent.ts";
import { evidenceDigest, evidenceOf, keptChecks } from "./evidence.ts";
import type { ExamAccount } from "./exam-account.ts";
import { guardedPayer } from "./exam-account.ts";
import type { ExamStore, NewResult } from "./exam-store.ts";
import type { ExamWork, StoredSignature, TakenExam } from "./exam-work-store.ts";
import { fetchConsent } from "./look.ts";
import { examClock, type NetworkHealthParts, ours, watchNetworkHealth } from "./network-health.ts";
import { EXAM_ASSET, EXAM_NETWORK, MOST_OPEN, MOST_RUNS, PAYMENTS_A_RUN, QUOTE_MINUTES } from "./products.ts";
import { type ChainSettlement, type ExaminedRequest, type ExamOrder, VALID_DAYS } from "./record.ts";
import { interrupted, type RefundParts, refund } from "./refund.ts";
import type { Visitor } from "./visitor-web.ts";

/** The means by which exams and rehearsals are held. */
export interface HoldingParts extends Omit<NetworkHealthParts, "block" | "resolves"> {
  readonly visitor: Visitor;
  readonly ledger: Ledger;
  readonly head: NetworkHealthParts["block"];
  readonly payer: Payer;
  readonly now: () => Date;
  readonly log: { warn(facts: object, message: string): void };
}

export interface RunnerParts extends HoldingParts {
  readonly store: Pick<ExamStore, "complete" | "get">;
  readonly work: ExamWork;
  readonly account: ExamAccount;
  readonly refunds: Pick<RefundParts, "send" | "finalView">;
  readonly baseUrl: string;
  /** The limit for exams in 24 hours, in atomic units. */
  readonly daily: bigint;
}

export interface ExamRunner {
  /**
   * Starts the exams that are due, up to this process's limit.
   * @returns the number started
   */
  runDue(): Promise<number>;
  /** Resolves once all running exams have ended. */
  idle(): Promise<void>;
}

const HEARTBEAT_MS = 10_000;
/** The longest that a seller may keep one run waiting, over all its answers. */
const SELLER_MS = 100_000;
/** After this time, the run no longer waits for the chain. */
const RUN_MS = 150_000;
/** The time after a payment's expiry, by the chain's clock, from which it may be published. */
const SHOWN_AFTER_SECONDS = 60n;
const LONGEST_PAUSE_SECONDS = 60;
/** An exam that cannot be held is abandoned after this time and this many attempts. */
const GIVEN_UP_AFTER_MS = 30 * 60_000;
const GIVEN_UP_AFTER_ATTEMPTS = 3;

export const createExamRunner = (parts: RunnerParts): ExamRunner =>
  createRunner(
    () => parts.work.take(),
    (taken) => runOne(parts, taken),
  );

/** Creates a runner of whatever `take` returns, up to this process's limit. */
export function createRunner<Taken>(
  take: () => Promise<Taken | null>,
  run: (taken: Taken) => Promise<void>,
): ExamRunner {
  const running = new PQueue();
  return {
    async runDue() {
      let begun = 0;
      while (running.pending < MOST_OPEN) {
        const taken = await take();
        if (taken === null) break;
        void running.add(() => run(taken));
        begun += 1;
      }
      return begun;
    },
    idle: () => running.onIdle(),
  };
}

/**
 * Makes one attempt. An outcome that is not a fact about the seller, such as an error of our node, ends it without a
 * result.
 */
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
    if (ended?.result != null) await paidBack(parts, taken);
    else await parts.store.complete(taken.order.id, taken.run, await attempt(parts, taken, lost.signal));
  } catch (error) {
    await failed(parts, taken, error).catch(() => undefined);
  } finally {
    end();
  }
}

/** The refund is owed however often it fails, for example while USDC is paused or our account is empty. */
async function paidBack(parts: RunnerParts, taken: TakenExam): Promise<void> {
  await refund({ ...parts.refunds, ...parts, from: parts.account.address }, taken).catch((error: unknown) => {
    parts.log.warn({ err: error, exam: taken.order.id }, "an exam is not paid back yet");
    return parts.work.putBack(taken, LONGEST_PAUSE_SECONDS);
  });
}

/**
 * Retries unless that would not help. Only a fault that is known to be ours is paid back, because a seller may cause
 * the others.
 */
async function failed(parts: RunnerParts, taken: TakenExam, error: unknown): Promise<void> {
  const { work, store, log, now } = parts;
  const { order, run, attempts } = taken;
  log.warn({ err: error, exam: order.id }, "a run of an exam did not finish");
  const isOurs = error instanceof ExaminersFault;
  const runs = runsOf(await work.signatures(order.id));
  const isLate =
    now().getTime() - order.orderedAt.getTime() >= GIVEN_UP_AFTER_MS && attempts >= GIVEN_UP_AFTER_ATTEMPTS;
  if (!isLate && !(isOurs && runs >= MOST_RUNS))
    return work.putBack(taken, Math.min(2 ** attempts, LONGEST_PAUSE_SECONDS));
  const end = isOurs ? debtOf(order) : "broke";
  await store.complete(order.id, run, interrupted({ runs, beganAt: now(), endedAt: now(), end }));
}

const debtOf = ({ againOf }: ExamOrder) => (againOf === null ? "refund" : "another");

const runsOf = (signatures: readonly StoredSignature[]): number => new Set(signatures.map(({ run }) => run)).size;

/**
 * A seller may change its quote while the exam waits for us, so a run that began late does not fail the seller for a
 * changed or missing quote.
 */
async function attempt(parts: RunnerParts, taken: TakenExam, lost: AbortSignal): Promise<NewResult> {
  const { order, run } = taken;
  const runs = runsOf(await parts.work.signatures(order.id));
  const beganAt = parts.now();
  if (runs >= MOST_RUNS) return interrupted({ runs, beganAt, endedAt: parts.now(), end: "broke" });
  if (!(await affordable(parts, order)))
    throw new ExaminersFault("the account that exams pay from, or the day's ceiling, is currently insufficient");
  const holding = await beginHolding(parts, lost);
  // An earlier run that signed had consent, which has been binding since then.
  const isNamed = runs > 0 || (await stillNamed(parts, order, holding.transport));
  await holding.requireWorked();
  if (!isNamed) return interrupted({ runs, beganAt, endedAt: parts.now(), end: "withdrawn" });
  const examined = { ...order, prefix: order.consent.prefix, network: EXAM_NETWORK };
  const report = await holding.examine(examined, (authorization, cost) => parts.work.note(taken, authorization, cost));
  const isStale = beganAt.getTime() - order.orderedAt.getTime() > QUOTE_MINUTES * 60_000;
  if (runs === 0 && report.terms === null && isStale)
    return interrupted({ runs, beganAt, endedAt: parts.now(), end: "stale" });
  const settlements = settlementsOf(report, parts.payer.address.toLowerCase() as Address);
  const signed = (await parts.work.signatures(order.id)).filter((one) => one.run === run);
  const isSpent = await overFor(parts, signed);
  return complete({ report, isSpent, settlements, runs: runs + 1, beganAt, endedAt: parts.now() });
}

async function affordable({ work, account, daily }: RunnerParts, { amount }: ExamOrder): Promise<boolean> {
  const [{ signed }, balance] = await Promise.all([work.commitments(), ours(account.balance())]);
  const needed = PAYMENTS_A_RUN * amount + 1n;
  return needed <= balance && signed + needed <= daily;
}

/** A request that is examined within its seller's quote. */
interface Examined extends ExaminedRequest, Pick<ExamOrder, "other" | "payTo" | "amount"> {
  /** The path prefix that the seller's file opens to the buyer. */
  readonly prefix: string;
  readonly network: Network;
}

/**
 * Begins to hold an exam or a rehearsal.
 * @throws ExaminersFault if our clock or the chain does not work
 */
export async function beginHolding(parts: HoldingParts, signal: AbortSignal) {
  const { ledger, payer, sleep, visitor } = parts;
  const clock = await examClock(ledger, parts.now);
  const endsAt = clock() + RUN_MS;
  const health = watchNetworkHealth({ ...parts, block: parts.head, resolves: visitor.resolves });
  const transport = health.over(visitor.visit(SELLER_MS, signal));
  return {
    transport,
    requireWorked: health.requireWorked,
    /**
     * @param note stores an authorization and its cost before it is signed
     * @throws ExaminersFault if our side did not work whenever the seller did not answer
     */
    async examine(
      { url, method, body, contentType, other, payTo, amount, prefix, network }: Examined,
      note: (authorization: Authorization, cost: bigint) => Promise<void>,
    ): Promise<ExamReport> {
      const report = await examine(
        {
          resource: { url, method, body, contentType },
          payable: { network, asset: NETWORKS[network].usdc.address, ceiling: amount, payTo },
          other: other === null ? null : { url: other, method, body },
          isAllowed: (route) => isUnder(prefix, route),
        },
        { transport, ledger, payer: guardedPayer(payer, { payTo, amount }, note), sleep, now: clock, endsAt },
      );
      await health.requireWorked();
      return report;
    },
  };
}

/** Returns which of a run's authorizations can no longer be submitted, by the chain's clock. */
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

/** In block order. */
const settlementsOf = ({ settled }: ExamReport, from: Address): readonly ChainSettlement[] =>
  [...settled]
    .map(([nonce, { transaction, block, to, value }]) => ({
      ...{ nonce, transaction, block: Number(block), from, to: to.toLowerCase() as Address, value },
    }))
    .sort((one, other) => one.block - other.block);

/**
 * Returns whether the origin still names the buyer for the same paths. Checked before anything else is sent, because a
 * seller that could withdraw later would keep every FAIL unpublished.
 */
async function stillNamed(
  { baseUrl, now }: RunnerParts,
  { consent: { prefix }, origin, payment: { payer } }: ExamOrder,
  transport: Transport,
): Promise<boolean> {
  const { lines } = await fetchConsent(transport, { origin, baseUrl, now: now() });
  return lines.some((line) => line.wallet === payer && line.prefix === prefix);
}

interface Held extends Pick<NewResult, "settlements" | "runs" | "beganAt" | "endedAt"> {
  readonly report: ExamReport;
  readonly isSpent: (nonce: string) => boolean;
}

function complete({ report, isSpent, settlements, endedAt, ...run }: Held): NewResult {
  const evidence = evidenceOf({ exchanges: report.exchanges, settlements }, isSpent);
  return {
    ...run,
    outcome: "complete",
    level: report.level,
    isPublic: true,
    note: null,
    checks: keptChecks(report.results),
    evidence,
    evidenceSha256: evidenceDigest(evidence),
    spent: report.spent,
    settlements,
    endedAt,
    validUntil: new Date(endedAt.getTime() + VALID_DAYS * 86_400_000),
  };
}
