import { EventEmitter, once } from "node:events";
import type { Hex } from "../platform/wallet.ts";
import type { EscrowChain, HoldEnd } from "./chain.ts";
import { gasCharged } from "./payment.ts";
import type { EscrowSender } from "./sender-chain.ts";
import type { EscrowStore, Task } from "./store.ts";

/** The most outcomes that a process has in progress: a few full transactions. */
const MOST_IN_PROGRESS = 200;
const LOOK_AGAIN_SECONDS = 4;
const LATE_NODE_SECONDS = 1;
const HOLD_GONE_SECONDS = 60;
/** Blocks checked in one pass, with one call each, however many outcomes they contain. */
const BLOCKS_A_PASS = 64;
/** Finality takes minutes. A reorganization before that is noticed within this time. */
const BLOCK_LOOK_SECONDS = 30;

export interface CarryingParts {
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly sender: EscrowSender;
  readonly log: {
    info(facts: object, message: string): void;
    warn(facts: object, message: string): void;
    error(facts: object, message: string): void;
  };
}

/** Carries decisions to the chain until they are final there. */
export interface Carrying {
  /** Starts due tasks as far as there is room, without waiting for them. Returns the number started. */
  settleDue(): Promise<number>;
  /** Checks the blocks of outcomes that are not final yet. */
  watchMined(): Promise<void>;
  /** Resolves when no task is in progress. */
  idle(): Promise<void>;
}

export function createCarrying(parts: CarryingParts): Carrying {
  const underWay = new Set<Promise<void>>();
  const start = (task: Task) => {
    const work = settle(parts, task).finally(() => underWay.delete(work));
    underWay.add(work);
  };
  return {
    async settleDue() {
      const room = MOST_IN_PROGRESS - underWay.size;
      if (room === 0) return 0;
      const tasks = await parts.store.take(room);
      for (const task of tasks) start(task);
      return tasks.length;
    },
    watchMined: () => watch(parts),
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/** Takes one step of a task: sends the missing transaction, or finds the event that ended the hold. Retries failed reads. */
async function settle(parts: CarryingParts, task: Task): Promise<void> {
  const { payment, decision } = task;
  try {
    await step(parts, task);
  } catch (error) {
    parts.log.warn({ err: error, payment, decision }, "an escrow payment is waiting for the chain");
    await parts.store.lookAgain(task, LOOK_AGAIN_SECONDS).catch(() => undefined);
  }
}

async function step(parts: CarryingParts, task: Task): Promise<void> {
  const { store, chain, sender } = parts;
  const { status, refundableFrom, time, block } = await chain.state(task);
  if (status === "none") {
    // Another node has seen the hold. If this node is past that block, a reorganization removed the hold; it may come
    // back.
    const isLate = block < task.heldBlock;
    return store.lookAgain(task, isLate ? LATE_NODE_SECONDS : HOLD_GONE_SECONDS);
  }
  if (status === "held") {
    if (task.contestUntil !== null) {
      if (time < task.contestUntil) return store.lookAgain(task, task.contestUntil - time);
      return close(parts, task, time >= refundableFrom);
    }
    // The arbiter could refund sooner, but only the clock decided, and a reorganization may have moved the hold to a
    // later block.
    const open = inTime(task, time);
    const isEarly = open.record === null && time < refundableFrom;
    if (isEarly) return store.lookAgain(open, pauseFor(refundableFrom - time));
    const carried = await sender.carry(open);
    if (carried.type === "mined") return store.mined(task, { ...carried, decision: open.decision });
    return store.lookAgain(open, LOOK_AGAIN_SECONDS);
  }
  const outcome = await chain.outcome(task);
  if (outcome === null) throw new Error("the node knows that the payment is over but not its log");
  return store.mined(task, { ...outcome, gas: null });
}

/** After this, a contest cannot change what is sent. If a contest came first, its answer makes the task due. */
async function close(parts: CarryingParts, task: Task, isRefundable: boolean): Promise<void> {
  const gas = gasCharged({ decision: "release", isContestable: true }, task.info.maxAmount);
  const closed = await parts.store.closeWindow(task.payment, { isRefundable, gas });
  if (closed === null) return;
  if (closed === "contested") return parts.store.lookAgain(task, LOOK_AGAIN_SECONDS);
  const record = closed === "refund" ? null : task.record;
  if (record === null)
    parts.log.warn(
      { payment: task.payment },
      "a contest had no answer when the hold became refundable, so the hold is refunded",
    );
  return settle(parts, { ...task, decision: closed, record, contestUntil: null });
}

/** After `authorizationExpiry`, nothing can be released, so the clock refunds the buyer, without a record. */
const inTime = (task: Task, time: number): Task =>
  task.decision === "release" && time >= task.info.authorizationExpiry
    ? { ...task, decision: "refund", record: null }
    : task;

const pauseFor = (seconds: number): number => Math.min(Math.max(seconds, LOOK_AGAIN_SECONDS), HOLD_GONE_SECONDS);

async function watch({ store, chain, log }: CarryingParts): Promise<void> {
  if (!(await store.hasMined())) return;
  const blocks = await store.blocks(await chain.final(), BLOCKS_A_PASS);
  const states = await Promise.all(blocks.map((block) => chain.blockState(block)));
  const found = (wanted: (typeof states)[number]) => blocks.filter((_, place) => states[place] === wanted);
  for (const block of found("final"))
    for (const { payment, decision, found } of await store.finish(block))
      log.error({ payment, decision, final: found }, "an escrow payment did not end as decided");
  for (const block of found("unknown")) await store.reopen(block);
  const waiting = found("pending");
  if (waiting.length > 0) await store.wait(waiting, BLOCK_LOOK_SECONDS);
}

const DECIDED = "decided";

/**
 * Notices of what this process stores about payments. They do not cover what other processes store, so callers must
 * also poll.
 */
export interface Notices {
  /** Calls `hear` after each decision that is stored. */
  onDecided(hear: () => void): void;
  /** Resolves with the end of the payment's hold once it is stored, or with null when `unwanted` aborts. */
  ended(payment: Hex, unwanted: AbortSignal): Promise<HoldEnd | null>;
}

/** Wraps the store so that other parts can wait for its decisions and outcomes. */
export function withNotices(store: EscrowStore): { readonly store: EscrowStore; readonly notices: Notices } {
  const stored = new EventEmitter<Record<string, [outcome?: HoldEnd]>>().setMaxListeners(0);
  const notifying: EscrowStore = {
    ...store,
    async decide(...decision) {
      const became = await store.decide(...decision);
      if (became === "stored") stored.emit(DECIDED);
      return became;
    },
    async mined(task, outcome) {
      await store.mined(task, outcome);
      stored.emit(task.payment, outcome);
    },
  };
  const notices: Notices = {
    onDecided: (hear) => void stored.on(DECIDED, hear),
    ended: (payment, unwanted) =>
      once(stored, payment, { signal: unwanted }).then(
        ([outcome]) => outcome,
        () => null,
      ),
  };
  return { store: notifying, notices };
}
