import type { Authorization } from "../../packages/escrow/src/authorization.ts";
import { isCollector } from "../../packages/seller-check/src/exam/hold.ts";
import type { Payer } from "../../packages/seller-check/src/exam/payment.ts";
import { formatUsd } from "../platform/money.ts";
import type { Address } from "../platform/wallet.ts";
import type { Commitments } from "./exam-work-store.ts";
import { MOST_OPEN, mostSpent, PAYMENTS_A_RUN } from "./products.ts";
import type { ExamOrder } from "./record.ts";

/** The account that pays in exams. */
export interface ExamAccount {
  readonly address: Address;
  balance(): Promise<bigint>;
}

/**
 * Returns the most that an authorization can take from the account that signs it. USDC requires a time after
 * `validAfter` and before `validBefore`. If there is no second between them, it can take nothing.
 */
export function costOf({ from, to, value, validAfter, validBefore }: Authorization): bigint {
  const isNever = validBefore <= validAfter + 1n;
  return isNever || to.toLowerCase() === from.toLowerCase() ? 0n : value;
}

/** The seller's quote when the exam was ordered. */
type Quoted = Pick<ExamOrder, "payTo" | "amount">;

/** Returns why an exam must not sign this, or null if it may. */
export function unfit(authorization: Authorization, { payTo, amount }: Quoted, payer: Address): string | null {
  const cost = costOf(authorization);
  if (authorization.from.toLowerCase() !== payer) return "it is from another account";
  if (cost > amount) return "it is for more than the seller quoted when the exam was ordered";
  // An escrow collects only for the quoted recipient, because the nonce is the hash of the hold's terms.
  if (cost > 0n && authorization.to.toLowerCase() !== payTo && !isCollector(authorization.to))
    return "it is for another recipient";
  return null;
}

/**
 * Returns a payer that signs for one run, within the seller's quote.
 * @param note stores an authorization and its cost before it is signed
 */
export function guardedPayer(
  payer: Payer,
  quoted: Quoted,
  note: (authorization: Authorization, cost: bigint) => Promise<void>,
): Payer {
  const address = payer.address.toLowerCase() as Address;
  let spent = 0n;
  return {
    address: payer.address,
    async signTypedData(data) {
      const { message } = data;
      const wrong = unfit(message, quoted, address);
      if (wrong !== null) throw new Error(`an exam does not sign an authorization: ${wrong}`);
      spent += costOf(message);
      if (spent > PAYMENTS_A_RUN * quoted.amount + 1n) throw new Error("an exam has signed its maximum for one run");
      await note(message, costOf(message));
      return payer.signTypedData(data);
    },
  };
}

export interface Means extends Commitments {
  /** Our account's balance. */
  readonly balance: bigint;
  /** The limit for exams in 24 hours. */
  readonly daily: bigint;
}

/** Returns why no exam at this price can be sold right now, or null if one can. */
export function noRoom({ open, openExams, owed, kept, signed, balance, daily }: Means, amount: bigint): string | null {
  if (openExams >= MOST_OPEN) return `${openExams} exams are open, and no more are sold until one has ended.`;
  const needed = open + mostSpent(amount);
  if (needed + owed + kept > balance) return "The account that exams pay from is currently short of funds.";
  if (signed + needed > daily)
    return `Exams may spend ${formatUsd(daily)} USDC in 24 hours, and that limit has been reached.`;
  return null;
}
