import type { Hex } from "../../platform/wallet.ts";
import type { SignedDelivery } from "../delivery.ts";
import type { Decision } from "../evaluation.ts";
import type { Hold } from "../payment.ts";
import type { ContestClaim } from "./claim.ts";
import type { Promised } from "./conditions.ts";

/** What the payer of a delivered payment may contest. */
export interface ContestWindow {
  readonly seconds: number;
  /** Unix seconds of the chain. */
  readonly until: number;
  /** As the payer's terms bind them. */
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly promised: Promised;
  readonly delivered: SignedDelivery;
  /** The block of the evaluation; null: the head. */
  readonly block: number | null;
}

/** A window as stored, of a payment whose release waits for it or did. */
export interface OpenedWindow extends ContestWindow {
  readonly hold: Pick<Hold, "network" | "contract" | "id" | "info">;
  /** Whether the release still waits for it. */
  readonly isWaiting: boolean;
}

/** What a payer said, once and for all. */
export interface Contest {
  readonly payment: Hex;
  readonly claim: ContestClaim;
  readonly claimSha256: Hex;
  readonly signature: Hex;
  /** Unix seconds of the chain. */
  readonly madeAt: number;
}

/** The answer to a contest; permanent. */
export interface ContestAnswer {
  readonly decision: Decision;
  readonly rule: string;
  readonly record: Hex;
  /** The signed document, byte for byte. */
  readonly document: string;
}

/** A window, and what was said in it. */
export interface ContestView {
  readonly window: OpenedWindow;
  readonly contest: (Contest & { readonly answer: ContestAnswer | null }) | null;
}

/** A process that answers contests: when it is gone, others answer what it had taken. */
export interface Present {
  readonly owner: number;
  leave(): void;
}

export interface ContestStore {
  enter(): Promise<Present>;
  window(payment: Hex): Promise<OpenedWindow | null>;
  contest(payment: Hex): Promise<(Contest & { readonly answer: ContestAnswer | null }) | null>;
  /**
   * Stores a contest while the release still waits at that time of the chain; the owner has its turn for a minute.
   * `taken`: there is one already. `over`: the window is closed.
   */
  open(contest: Contest, owner: Present["owner"]): Promise<"opened" | "taken" | "over">;
  /** Whether an open contest is nobody's turn. */
  areDue(): Promise<boolean>;
  /**
   * Claims open contests for a minute each, also those whose owner is gone: by value divided by the time until their windows
   * end, which counts as a minute at least, then those that end first.
   * @param time of the chain, in Unix seconds
   */
  take(limit: number, owner: Present["owner"], time: number): Promise<readonly Hex[]>;
  /** An open contest is looked at again after this many seconds. */
  lookAgain(payment: Hex, seconds: number): Promise<void>;
  /**
   * Stores the first answer and carries out what follows from it, all or nothing: the release need not wait any more, or
   * becomes a refund. The gas goes back to the merchant's account. Returns the stored one.
   * @param sign makes the answer; `isOpen` says whether the release still waits
   */
  answer(
    payment: Hex,
    sign: (isOpen: boolean) => Promise<ContestAnswer & { readonly gas: bigint }>,
  ): Promise<ContestAnswer>;
}
