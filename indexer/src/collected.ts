import type { Address } from "../../api/platform/wallet.ts";
import { COLLECTORS } from "../environment.ts";
import type { Seen } from "../ledger.ts";

// All operators share base/commerce-payments' collector. `Held` records our holds, and precedes the money in the same
// transaction. That transfer to the collector must not count as a second payment.

type Transfer = Pick<Seen, "from" | "to" | "value" | "transaction">;

/** Ponder commits only whole blocks, so memory suffices. */
let awaited: Transfer | null = null;

/** Whether a contract is an operator, which pays fees immediately and whose payers' money goes to the collector. */
export const isOperator = (contract: Address): boolean => COLLECTORS.has(contract);

/** Records that the next transfer is the money of this hold, if the contract is an operator. */
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
