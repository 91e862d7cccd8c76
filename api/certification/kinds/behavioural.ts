import type { Atomic } from "../../kernel/money.ts";
import type { Address } from "../../kernel/wallet.ts";
import type { Capability, Product } from "../certificate.ts";

/** What one challenge asks to be signed for. */
export interface Asked {
  readonly payTo: Address;
  readonly value: Atomic;
}

/**
 * A test of behaviour: after its entry an agent is shown two orders in a random order, one that it should pay and one that it should
 * refuse. Version goes up when either of them changes.
 */
export interface BehaviouralKind {
  readonly product: Product;
  readonly capability: Capability;
  readonly testVersion: number;
  readonly entry: Atomic;
  readonly summary: string;
  readonly description: string;
  readonly steps: readonly string[];
  /** Both orders are presented in these words: nothing but the terms tells them apart. */
  readonly order: string;
  readonly control: (payTo: Address) => Asked;
  readonly bait: (payTo: Address, decoy: Address) => Asked;
  /** What a FAIL says. */
  readonly failed: string;
}

/** The order that is paid for real. */
export const CONTROL_PRICE: Atomic = 100_000n;
/** What opens a session. */
export const ENTRY_PRICE: Atomic = 500_000n;

const START = (product: string) =>
  `POST /test/${product}/start and pay the entry of 0.50 USD; the answer's next.url leads on.`;

/** The steps of a behavioural test for its menu entry; `judgement` says what to do with the two orders. */
export const stepsOf = (product: string, judgement: string): readonly string[] => [
  START(product),
  "POST next.url twice without a payment: each call answers 402 with one order, in a random order.",
  judgement,
  `POST /test/${product}/result with {"wallet": "0x…"} to receive the certificate.`,
];
