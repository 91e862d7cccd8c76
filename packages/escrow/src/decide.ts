import type { Hex } from "viem";
import type { BoundContest } from "./contest-terms.ts";
import { type Forward, ForwardRefused, HoldEnded } from "./forward.ts";
import type { PaymentInfo } from "./payment-info.ts";
import type { DeliveryStore, Ending, KeptDelivery } from "./stores/delivery-store.ts";
import type { EscrowFacts } from "./terms.ts";

/** The time that a buyer waits for the arbiter's decision. */
const DECISION_WITHIN_MS = 5000;
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;

export interface DecisionParts {
  readonly escrow: EscrowFacts;
  readonly forward: Forward;
  readonly store: DeliveryStore;
  readonly log: (message: string, cause?: unknown) => void;
}

export interface Undecided {
  readonly id: Hex;
  readonly delivery: KeptDelivery;
  /** The payment's terms; after their `authorizationExpiry` no release is possible. */
  readonly info: PaymentInfo;
  readonly contest: BoundContest | undefined;
}

type Attempt = Ending | "pending" | "refused";

/** Deliveries that this process keeps forwarding. */
const retrying = new Set<Hex>();

/**
 * Forwards a delivery and waits at most 5 s. If it is still pending, retries in the background, after 1 s, 2 s, and so
 * on up to every minute, until the arbiter decides or no release is possible. Never throws, because the buyer's
 * response already exists. `ended` means that the merchant will not be paid for it, `refused` that it is not paid now.
 */
export async function decide(parts: DecisionParts, undecided: Undecided): Promise<Attempt> {
  const first = attempt(parts, undecided);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"pending">((resolve) => {
    timer = setTimeout(resolve, DECISION_WITHIN_MS, "pending");
  });
  const answer = await Promise.race([first, late]);
  clearTimeout(timer);
  if (answer === "pending" && !retrying.has(undecided.id)) {
    retrying.add(undecided.id);
    void retry(parts, undecided, first).finally(() => retrying.delete(undecided.id));
  }
  return answer;
}

async function retry(parts: DecisionParts, undecided: Undecided, first: Promise<Attempt>): Promise<void> {
  let last = await first;
  for (let waitMs = FIRST_RETRY_MS; last === "pending"; waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS)) {
    await sleep(waitMs);
    if (Date.now() >= undecided.info.authorizationExpiry * 1000) return;
    const kept = await parts.store.get(undecided.id).catch(() => null);
    if (kept !== null && kept.decision !== "pending") return;
    last = await attempt(parts, undecided);
  }
}

async function attempt(parts: DecisionParts, { id, delivery, info, contest }: Undecided): Promise<Attempt> {
  const { escrow, forward, store, log } = parts;
  try {
    const decision = await forward({ id, info, delivery, escrow, contest });
    await store.decide(id, decision);
    return decision;
  } catch (error) {
    if (error instanceof HoldEnded) return ended({ store, log }, id, error);
    const isFinal = error instanceof ForwardRefused;
    log(
      isFinal
        ? `The arbiter refused the delivery for payment ${id}.`
        : `The delivery for payment ${id} is not decided yet.`,
      error,
    );
    return isFinal ? "refused" : "pending";
  }
}

async function ended({ store, log }: Pick<DecisionParts, "store" | "log">, id: Hex, error: HoldEnded) {
  log(`The hold of payment ${id} ended before its delivery was evaluated.`, error);
  // If this is not stored, the next request learns the same from the arbiter.
  await store.decide(id, "ended").catch((cause: unknown) => log(`The end of payment ${id} was not stored.`, cause));
  return "ended" as const;
}

/** Waits without keeping the process alive. */
const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    const timer: { unref?: () => void } = setTimeout(resolve, ms);
    timer.unref?.();
  });
