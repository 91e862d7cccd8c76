import { NETWORKS } from "../kernel/networks.ts";
import type { Hex } from "../kernel/wallet.ts";
import type { EscrowContract } from "../payments/commerce/escrow-contract.ts";
import type { Signer } from "../signing/document.ts";
import { deliveryDigest, deliveryOf, type Forward } from "./delivery.ts";
import type {
  Answered,
  EscrowChain,
  EscrowSender,
  EscrowStore,
  Evaluation,
  OverdueHolds,
  Task,
} from "./escrow-ports.ts";
import { evaluate } from "./evaluation.ts";
import { type Hold, paymentId } from "./payment.ts";
import { evaluationPath, evaluationRecord, recordHash } from "./record.ts";

const AT_ONCE = 16;
const MINED_WITHIN_MS = 20_000;
const LOOK_AGAIN_SECONDS = 4;
/** Finality takes minutes. Mined tasks are checked rarely enough that new payments never wait for them. */
const FINAL_LOOK_SECONDS = 30;
const HOLD_GONE_SECONDS = 60;
/**
 * More than can be started at once, because holds that already have a task stay overdue until the chain is done with
 * them.
 */
const OVERDUE_AT_ONCE = 256;
/** The time a release needs to be mined; a later one would revert, and its payment would never end. */
const RELEASE_WITHIN_SECONDS = 60;

export interface EscrowParts {
  readonly contracts: readonly EscrowContract[];
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly sender: EscrowSender;
  readonly overdue: OverdueHolds;
  readonly signer: Signer;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly log: {
    info(facts: object, message: string): void;
    warn(facts: object, message: string): void;
    error(facts: object, message: string): void;
  };
}

/** Why a forwarded delivery is not evaluated; no money moves. */
export type Refusal = "unknown_payment" | "not_signed" | "wrong_signer" | "already_refunded" | "expired";

export interface Escrow {
  /** Evaluates a merchant's delivery once. The first evaluation of a payment is final; repeats get the same one. */
  verify(forward: Forward): Promise<Answered | { readonly refused: Refusal }>;
  evaluation(payment: Hex): Promise<Answered | null>;
  /** Carries decisions to the chain until they are final there; returns how many it looked at. */
  settleDue(): Promise<number>;
  /** Refunds what was not decided within 30 minutes; returns how many holds it took up. */
  refundOverdue(): Promise<number>;
}

export function createEscrow(parts: EscrowParts): Escrow {
  const { store, chain, overdue, now } = parts;
  const answered = async (evaluation: Evaluation): Promise<Answered> => {
    const task = await store.task(evaluation.payment);
    if (task === null || task.state === "open") return { evaluation, status: "pending", transaction: null };
    // From the task, not the evaluation: anyone may have refunded before the release was mined.
    return { evaluation, status: OUTCOMES[task.decision], transaction: task.transaction };
  };
  return {
    async verify(forward) {
      // An unsigned forward costs no look at the chain.
      if (forward.signature === undefined) return { refused: "not_signed" };
      const hold = await findHold(parts, forward);
      if (hold === null) return { refused: "unknown_payment" };
      const delivery = deliveryOf(forward);
      const digest = deliveryDigest(hold, delivery);
      if (!(await chain.isSigned(hold.info.receiver, digest, forward.signature))) return { refused: "wrong_signer" };
      const known = await store.evaluation(hold.id);
      if (known !== null) return answered(known);
      const refused = await tooLate(parts, hold);
      if (refused === null) {
        const evaluation = signed(parts, { hold, delivery, rule: evaluate(delivery) });
        if ((await store.decide(hold, evaluation)) === 1) return answered(evaluation);
      }
      // A concurrent request may have decided, and even ended the hold: its evaluation is this request's too.
      const first = await store.evaluation(hold.id);
      return first === null ? { refused: refused ?? "already_refunded" } : answered(first);
    },

    async evaluation(payment) {
      const evaluation = await store.evaluation(payment);
      return evaluation === null ? null : answered(evaluation);
    },

    async settleDue() {
      const tasks = await store.take(AT_ONCE);
      await Promise.all(tasks.map((task) => settle(parts, task)));
      return tasks.length;
    },

    async refundOverdue() {
      const holds = (await overdue.overdue(Math.floor(now().getTime() / 1000), OVERDUE_AT_ONCE)) ?? [];
      let taken = 0;
      for (const hold of holds) taken += await store.timeOut(hold);
      return taken;
    },
  };
}

async function findHold(parts: EscrowParts, forward: Forward): Promise<Hold | null> {
  const hold = await readHold(parts, forward);
  const [current, ...earlier] = parts.contracts;
  const contract = [current, ...earlier].find((candidate) => candidate?.address === hold?.contract);
  // An earlier contract with another arbiter does not accept our decisions: only the clock ends what it holds.
  return contract?.arbiter === current?.arbiter ? hold : null;
}

async function readHold({ chain, contracts }: EscrowParts, forward: Forward): Promise<Hold | null> {
  const { payment_id, paymentInfo, transaction } = forward;
  if (transaction !== undefined) return chain.holdByTransaction(transaction);
  if (payment_id !== undefined) return chain.holdById(payment_id);
  const contract = contracts.find(({ address }) => address === paymentInfo?.operator);
  if (contract === undefined || paymentInfo === undefined) return null;
  return chain.holdById(paymentId(paymentInfo, NETWORKS[contract.network].chainId, contract.address));
}

/** Why a delivery that has no evaluation yet is too late, or too early for this node; null if it is neither. */
async function tooLate({ chain, store }: EscrowParts, { contract, id, info }: Hold): Promise<Refusal | null> {
  if ((await store.task(id)) !== null) return "already_refunded";
  const [status, time] = await Promise.all([chain.status({ contract, payment: id }, "latest"), chain.time()]);
  if (status === "none") return "unknown_payment";
  if (status !== "held") return "already_refunded";
  return time + RELEASE_WITHIN_SECONDS >= info.authorizationExpiry ? "expired" : null;
}

function signed({ signer, baseUrl, now }: EscrowParts, found: Parameters<typeof evaluationRecord>[0]): Evaluation {
  const at = now();
  const url = `${baseUrl}${evaluationPath(found.hold.id)}`;
  const document = signer.sign(evaluationRecord(found, { issuer: signer.issuer, url, now: at }), at);
  return {
    payment: found.hold.id,
    decision: found.rule.decision,
    rule: found.rule.id,
    record: recordHash(document),
    document: JSON.stringify(document),
  };
}

/** One step of a task: send what is missing, wait until it is final, then leave it. Failed reads are retried. */
async function settle(parts: EscrowParts, task: Task): Promise<void> {
  const { store, log } = parts;
  try {
    await step(parts, task);
  } catch (error) {
    const state = task.state === "mined" ? "mined" : "open";
    log.warn(
      { err: error, payment: task.payment, decision: task.decision },
      "an escrow payment is waiting for the chain",
    );
    await store
      .note(task.payment, { state, transaction: task.transaction, seconds: LOOK_AGAIN_SECONDS })
      .catch(() => undefined);
  }
}

async function step(parts: EscrowParts, task: Task): Promise<void> {
  const { store, chain } = parts;
  const status = await chain.status(task, "latest");
  switch (status) {
    case "none":
      // A reorganization removed the hold; it may come back.
      return store.note(task.payment, { state: "open", transaction: null, seconds: HOLD_GONE_SECONDS });
    case "held":
      return send(parts, task);
    default:
      return ended(parts, task, status);
  }
}

async function send({ store, sender }: EscrowParts, task: Task): Promise<void> {
  const sent = task.transaction !== null && (await store.isCarried(task.transaction)) ? task.transaction : null;
  const transaction = sent ?? (await sender.send(task));
  // Recorded at once: after a crash this transaction is awaited, not sent a second time.
  await store.note(task.payment, { state: "open", transaction, seconds: MINED_WITHIN_MS / 1000 });
  const became = await sender.waitFor(transaction, MINED_WITHIN_MS);
  if (became === "mined") return store.note(task.payment, { state: "mined", transaction, seconds: LOOK_AGAIN_SECONDS });
  const pending = became === "reverted" ? null : transaction;
  await store.note(task.payment, { state: "open", transaction: pending, seconds: LOOK_AGAIN_SECONDS });
}

/** Released or refunded at the head; over once a final block agrees. */
async function ended({ store, chain, log }: EscrowParts, task: Task, found: "released" | "refunded"): Promise<void> {
  const transaction = (await chain.outcome(task)) ?? task.transaction;
  const final = await chain.status(task, "finalized");
  if (final === "released" || final === "refunded") {
    const decision = final === "released" ? "release" : "refund";
    if (decision !== task.decision)
      log.error({ payment: task.payment, decision: task.decision, final }, "an escrow payment did not end as decided");
    return store.end(task.payment, decision, transaction);
  }
  // A different outcome may still be undone: until it is final, our task stays open.
  if (found !== OUTCOMES[task.decision])
    return store.note(task.payment, { state: "open", transaction: null, seconds: FINAL_LOOK_SECONDS });
  return store.note(task.payment, { state: "mined", transaction, seconds: FINAL_LOOK_SECONDS });
}

const OUTCOMES = { release: "released", refund: "refunded" } as const;
