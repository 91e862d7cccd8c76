import type { Account, PayerFact } from "./facts.ts";

export interface Circle {
  readonly wallet: Account;
  readonly payee: Account;
  /** The wallet's largest funders, now and when its payments reached the floor. */
  readonly funders: readonly (Account | null)[];
}

/** Returns the number of distinct funders of these payers outside the circle of the wallet and its payee. */
export function otherFunders(payers: readonly PayerFact[], { wallet, payee, funders }: Circle): number {
  const circle: ReadonlySet<Account | null> = new Set([wallet, payee, ...funders]);
  const found = payers.map(({ funder }) => funder).filter((funder) => funder !== null && !circle.has(funder));
  return new Set(found).size;
}
