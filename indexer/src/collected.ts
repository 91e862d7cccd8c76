import type { Address } from "../../api/platform/wallet.ts";
import { COLLECTORS } from "../environment.ts";
import type { Seen } from "../ledger.ts";

// base/commerce-payments' collector takes USDC for everybody. A hold of ours is recorded by `Held`, which comes before its
// money in the same transaction: that one transfer to the collector is not a second payment.

type Transfer = Pick<Seen, "from" | "to" | "value" | "transaction">;

/** Ponder commits only whole blocks, so memory suffices. */
let awaited: Transfer | null = null;

/** Whether a contract holds nothing itself: it pays fees immediately, and its holds' money goes to the collector. */
export const isOperator = (contract: Address): boolean => COLLECTORS.has(contract);

/** Notes a hold through an operator; its money comes next. */
export function awaitMoney(contract: Address, hold: Omit<Transfer, "to">): void {
  const to = COLLECTORS.get(contract);
  awaited = to === undefined ? null : { ...hold, to };
}

/** Whether an authorized transfer is the money of the hold before it. */
export function isMoneyOfHold({ from, to, value, transaction }: Transfer): boolean {
  if (awaited === null || awaited.transaction !== transaction) return false;
  if (awaited.from !== from || awaited.to !== to || awaited.value !== value) return false;
  awaited = null;
  return true;
}
