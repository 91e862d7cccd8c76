import { NETWORKS } from "../kernel/networks.ts";
import type { Hex } from "../kernel/wallet.ts";
import type { Signer } from "../signing/document.ts";
import { deliveryDigest, deliveryOf, type Forward } from "./delivery.ts";
import { evaluate } from "./evaluation.ts";
import { type Hold, paymentId } from "./payment.ts";
import type {
  Answered,
  EscrowChain,
  EscrowContract,
  EscrowSender,
  EscrowStore,
  Evaluation,
  OverdueHolds,
  Task,
} from "./ports.ts";
import { evaluationPath, evaluationRecord, recordHash } from "./record.ts";

const AT_ONCE = 16;
const MINED_WITHIN_MS = 20_000;
const LOOK_AGAIN_SECONDS = 4;
const HOLD_GONE_SECONDS = 60;

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

/** Why a forwarded delivery is not evaluated; nothing moves. */
export type Refusal = "unknown_payment" | "not_signed" | "wrong_signer" | "already_refunded";

export interface Escrow {
  /** Evaluates a merchant's delivery, once: the first evaluation of a payment is final, and repeats get it again. */
  verify(forward: Forward): Promise<Answered | { readonly refused: Refusal }>;
  evaluation(payment: Hex): Promise<Answered | null>;
  /** Carries decisions to the chain until they are final there; answers how many it looked at. */
  settleDue(): Promise<number>;
  /** Refunds what nobody decided in 30 minutes; answers how many holds it took up. */
  keep(): Promise<number>;
}

export function createEscrow(parts: EscrowParts): Escrow {
  const { store, chain, overdue, now } = parts;
  const answered = async (evaluation: Evaluation): Promise<Answered> => {
    const task = await store.task(evaluation.payment);
    if (task === null || task.state === "open") return { evaluation, status: "pending", transaction: null };
    return { evaluation, status: OUTCOMES[evaluation.decision], transaction: task.transaction };
  };
  return {
    async verify(forward) {
      const hold = await findHold(parts, forward);
      if (hold === null) return { refused: "unknown_payment" };
      if (forward.signature === undefined) return { refused: "not_signed" };
      const delivery = deliveryOf(forward);
      const digest = deliveryDigest(NETWORKS[hold.network], hold.contract, hold.id, delivery);
      if (!(await chain.isSigned(hold.info.receiver, digest, forward.signature))) return { refused: "wrong_signer" };
      const known = await store.evaluation(hold.id);
      if (known !== null) return answered(known);
      if (await isOver(parts, hold)) return { refused: "already_refunded" };
      const rule = evaluate(delivery);
      const evaluation = signed(parts, { hold, delivery, rule });
      if ((await store.decide(hold, evaluation)) === 1) return answered(evaluation);
      const first = await store.evaluation(hold.id);
      return first === null ? { refused: "already_refunded" } : answered(first);
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

    async keep() {
      const holds = (await overdue.overdue(Math.floor(now().getTime() / 1000), AT_ONCE)) ?? [];
      let taken = 0;
      for (const hold of holds) taken += await store.timeOut(hold);
      return taken;
    },
  };
}

async function findHold({ chain, contracts }: EscrowParts, forward: Forward): Promise<Hold | null> {
  const { payment_id, paymentInfo, transaction } = forward;
  if (transaction !== undefined) return chain.holdByTransaction(transaction);
  if (payment_id !== undefined) return chain.holdById(payment_id);
  const contract = contracts.find(({ address }) => address === paymentInfo?.operator);
  if (contract === undefined || paymentInfo === undefined) return null;
  return chain.holdById(paymentId(paymentInfo, NETWORKS[contract.network].chainId, contract.address));
}

/** Refunded by the clock, or being refunded: whatever is delivered now comes too late. */
async function isOver({ chain, store }: EscrowParts, { contract, id }: Hold): Promise<boolean> {
  if ((await store.task(id)) !== null) return (await store.evaluation(id)) === null;
  return (await chain.status({ contract, payment: id }, "latest")) !== "held";
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

/** One step of a task: send what is missing, wait until it is final, then leave it. What cannot be read is tried again. */
async function settle(parts: EscrowParts, task: Task): Promise<void> {
  const { store, log } = parts;
  try {
    await step(parts, task);
  } catch (error) {
    log.warn({ err: error, payment: task.payment, decision: task.decision }, "an escrow payment waits for the chain");
    await store.note(task.payment, task.state, task.transaction, LOOK_AGAIN_SECONDS).catch(() => undefined);
  }
}

async function step(parts: EscrowParts, task: Task): Promise<void> {
  const { store, chain } = parts;
  switch (await chain.status(task, "latest")) {
    case "none":
      // The hold was taken back by a reorganisation; it may come again.
      return store.note(task.payment, "open", null, HOLD_GONE_SECONDS);
    case "held":
      return send(parts, task);
    default:
      return ended(parts, task);
  }
}

async function send({ store, sender }: EscrowParts, task: Task): Promise<void> {
  const transaction = task.transaction ?? (await sender.send(task));
  // Noted at once: after a crash this transaction is waited for, not sent a second time.
  await store.note(task.payment, "open", transaction, MINED_WITHIN_MS / 1000);
  const became = await sender.waitFor(transaction, MINED_WITHIN_MS);
  if (became === "mined") return store.note(task.payment, "mined", transaction, LOOK_AGAIN_SECONDS);
  await store.note(task.payment, "open", became === "reverted" ? null : transaction, LOOK_AGAIN_SECONDS);
}

/** Released or refunded at the head: the end once a final block says so. */
async function ended({ store, chain, log }: EscrowParts, task: Task): Promise<void> {
  const transaction = (await chain.outcome(task)) ?? task.transaction;
  const final = await chain.status(task, "finalized");
  if (final !== "released" && final !== "refunded")
    return store.note(task.payment, "mined", transaction, LOOK_AGAIN_SECONDS);
  if (final !== OUTCOMES[task.decision])
    log.error(
      { payment: task.payment, decision: task.decision, final },
      "an escrow payment ended otherwise than decided",
    );
  return store.note(task.payment, "final", transaction, 0);
}

const OUTCOMES = { release: "released", refund: "refunded" } as const;
