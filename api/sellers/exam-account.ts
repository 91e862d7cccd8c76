import type { Authorization } from "../../packages/escrow/src/authorization.ts";
import { isCollector } from "../../packages/seller-check/src/exam/hold.ts";
import type { Payer } from "../../packages/seller-check/src/exam/payment.ts";
import { formatUsd } from "../platform/money.ts";
import type { Address } from "../platform/wallet.ts";
import type { Commitments } from "./exam-work-store.ts";
import { MOST_OPEN, mostSpent, PAYMENTS_A_RUN } from "./products.ts";
import type { ExamOrder } from "./record.ts";

/** Pays in exams. */
export interface ExamAccount {
  readonly address: Address;
  balance(): Promise<bigint>;
}

/**
 * What an authorization may take from the account that signs it. USDC wants a time after `validAfter` and before
 * `validBefore`: where there is none between them, nothing.
 */
export function costOf({ from, to, value, validAfter, validBefore }: Authorization): bigint {
  const isNever = validBefore <= validAfter + 1n;
  return isNever || to.toLowerCase() === from.toLowerCase() ? 0n : value;
}

/** What the seller quoted when the exam was ordered. */
type Quoted = Pick<ExamOrder, "payTo" | "amount">;

/** Why an exam must not sign this; null if it may. */
export function unfit(authorization: Authorization, { payTo, amount }: Quoted, payer: Address): string | null {
  const cost = costOf(authorization);
  if (authorization.from.toLowerCase() !== payer) return "it is from another account";
  if (cost > amount) return "it is for more than the seller quoted when the exam was ordered";
  // What an escrow collects is held for the quoted recipient: the nonce is the hash of the hold's terms.
  if (cost > 0n && authorization.to.toLowerCase() !== payTo && !isCollector(authorization.to))
    return "it is for another recipient";
  return null;
}

/**
 * Signs for one run, and nothing beyond what was quoted.
 * @param note writes an authorization down before it is signed, with its cost
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
      if (spent > PAYMENTS_A_RUN * quoted.amount + 1n) throw new Error("an exam has signed all that a run may");
      await note(message, costOf(message));
      return payer.signTypedData(data);
    },
  };
}

export interface Means extends Commitments {
  /** Of our account. */
  readonly balance: bigint;
  /** What exams may spend in 24 hours. */
  readonly daily: bigint;
}

/** Why no exam at this price can be sold at the moment; null if one can. */
export function noRoom({ open, openExams, owed, kept, signed, balance, daily }: Means, amount: bigint): string | null {
  if (openExams >= MOST_OPEN) return `${openExams} exams are open, and no more are sold until one has ended.`;
  const needed = open + mostSpent(amount);
  if (needed + owed + kept > balance) return "The account that exams pay from is short of funds at the moment.";
  if (signed + needed > daily)
    return `Exams may spend ${formatUsd(daily)} USDC in 24 hours, and that is used up for now.`;
  return null;
}
