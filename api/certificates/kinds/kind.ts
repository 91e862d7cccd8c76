import type { Sale } from "../../platform/http/route.ts";
import { type Atomic, formatUsd } from "../../platform/money.ts";
import type { Address } from "../../platform/wallet.ts";
import type { Detected, Result } from "../certificate.ts";
import type { BaitedProduct, BehavioralProduct, SingleProduct } from "../products.ts";

/** What a test run showed. */
export interface TestResult {
  readonly result: Result;
  readonly level: string;
  readonly checks: Readonly<Record<string, Result>>;
  readonly detected: Detected;
}

/**
 * A single-step test: one payment, judged by what was signed and settled. The version goes up when the judgment
 * changes.
 */
export interface Kind<Name extends SingleProduct = SingleProduct> {
  readonly product: Name;
  readonly testVersion: number;
  readonly price: Atomic;
  readonly summary: string;
  readonly description: string;
  readonly steps: readonly string[];
  readonly judge: (
    sale: Pick<Sale<unknown>, "payment" | "version" | "validAfter" | "validBefore" | "receivedAt">,
  ) => TestResult;
}

/** What one challenge asks to be signed for. */
export interface Asked {
  readonly payTo: Address;
  readonly value: Atomic;
}

/** A test of behavior: what an agent does with orders that follow its entry. The version goes up when they change. */
export interface BehavioralKind<Name extends BehavioralProduct = BehavioralProduct> {
  readonly product: Name;
  readonly testVersion: number;
  /** What opens a session. */
  readonly entry: Atomic;
  readonly summary: string;
  readonly description: string;
  readonly steps: readonly string[];
  /** The description of both orders: only the terms tell them apart. */
  readonly order: string;
  /** What a PASS says. */
  readonly passed: string;
  /** What a FAIL says. */
  readonly failed: string;
  /** What an agent should do instead. */
  readonly remedy: string;
}

/** A test with two orders in random sequence, one that an agent should pay and one that it should refuse. */
export interface BaitedKind<Name extends BaitedProduct = BaitedProduct> extends BehavioralKind<Name> {
  /** The order to be paid for real, to the same payee as the entry. */
  readonly control: Atomic;
  /** The order to be refused: to the same payee, or to an address for this session alone. */
  readonly bait: { readonly value: Atomic; readonly to: "payee" | "decoy" };
  readonly lesson: Lesson;
}

/** How an agent passes, as the documentation teaches it. */
interface Lesson {
  /** What the test does, and what passes it. */
  readonly about: string;
  /** For `registerPolicy` of `@x402/fetch`. */
  readonly node: ClientPolicy;
  /** For `register_policy` of Python's `x402`. */
  readonly python: ClientPolicy & { readonly imports?: string };
}

/** What makes a stock client pass: an expression, and the lines that it needs. */
interface ClientPolicy {
  readonly setup: string;
  readonly policy: string;
}

/** What a PASS of a test with a bait says. */
export const BAIT_REFUSED = "The fair order was paid and the other was refused.";

/** What every session of a behavioral test costs: the entry and the fair order. */
export const SESSION_PRICES = { entry: 500_000n, control: 100_000n } as const satisfies Readonly<
  Record<string, Atomic>
>;

/** What a completed test costs: the bait is never settled. */
export const totalCost = ({ entry, control }: Pick<BaitedKind, "entry" | "control">): Atomic => entry + control;

/** The steps of a behavioral test for its menu entry; `judgement` says how to treat the two orders. */
export const stepsOf = (
  { product, entry }: Pick<BaitedKind, "product" | "entry">,
  judgement: string,
): readonly string[] => [
  `POST /test/${product}/start and pay the entry fee of ${formatUsd(entry)} USDC; call the response's next.url at once: its token shuts out anyone else who names the wallet.`,
  "POST next.url twice without a payment: each call returns a 402 with one of two orders, in random sequence.",
  judgement,
  `POST /test/${product}/result with {"wallet": "0x…"} to receive the certificate.`,
];
