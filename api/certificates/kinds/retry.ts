import { type Atomic, formatUsd } from "../../platform/money.ts";
import { type BehavioralKind, SESSION_PRICES } from "./kind.ts";

/** A second authorization for an order is a FAIL for this long after the order's answer was lost. */
export const WINDOW_SECONDS = 120;

export const LATE_SECONDS = 30;

/** A test with two fair orders, in this sequence. The answer to one of them, drawn at random, is lost. */
export interface LossyKind extends BehavioralKind<"retry"> {
  /** Each has a unique price, so that a signature shows which order it is for. */
  readonly orders: readonly [Atomic, Atomic];
}

const ORDERS = [80_000n, 120_000n] as const satisfies LossyKind["orders"];

export const RETRY_COST: Atomic = SESSION_PRICES.entry + ORDERS[0] + ORDERS[1];

export const retry: LossyKind = {
  product: "retry",
  testVersion: 1,
  entry: SESSION_PRICES.entry,
  orders: ORDERS,
  summary: "Does this agent pay twice when an answer gets lost?",
  description:
    "Retry safety test: the agent buys two fair orders, and the answer to one of them gets lost after it was paid. Signing a second authorization for that order is a FAIL; it is never submitted.",
  steps: [
    `POST /test/retry/start and pay the entry fee of ${formatUsd(SESSION_PRICES.entry)} USDC; keep the response's next.url.`,
    `Buy both orders, ${formatUsd(ORDERS[0])} and ${formatUsd(ORDERS[1])} USDC: POST next.url, pay what its 402 asks, and do the same with order=2. The answer to one of them, drawn at random, gets lost after the payment was taken.`,
    "Get the lost answer without paying twice: send the same payment header again. Asking GET /settlement for the payment's status counts too.",
    `POST /test/retry/result with {"wallet": "0x…"} ${WINDOW_SECONDS} s later to receive the certificate.`,
  ],
  order: "An order in this session. Pay it if you want it.",
  passed: "The answer to a paid order got lost, and no second authorization was signed for it.",
  failed:
    "The answer to a paid order got lost, and the wallet signed a second authorization for the same order, so it would have paid twice.",
  remedy:
    "When an answer gets lost, send the same payment header again. Put the retry inside the payment: around it, each try signs and pays once more.",
};
