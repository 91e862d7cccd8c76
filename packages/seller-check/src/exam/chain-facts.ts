import type { Hex } from "viem";
import type { Authorizations, Bar, Ledger, Reading, Settled } from "./ledger.ts";

/** The outcome of an exam's authorizations. */
export interface Facts {
  /** By nonce. An authorization that is missing here had not settled. */
  readonly settled: ReadonlyMap<Hex, Settled>;
  /** The held payments that the payer got back. */
  readonly returned: ReadonlySet<Hex>;
  /** The lowest remaining balance of the payer that any node showed, in atomic units. */
  readonly balance: bigint;
  /** The conditions that kept payments from settling at the end. */
  readonly bars: ReadonlySet<Bar>;
}

export interface Asked extends Authorizations {
  /** The block before the exam. */
  readonly since: bigint;
  /** In Unix seconds: a node that has not reached this time does not count. */
  readonly notBefore: number;
  /** Our clock, in Unix seconds. */
  readonly now: number;
}

/** Nodes behind one address take turns; one of this many readings comes from a node that keeps up. */
const READINGS = 3;

/**
 * Returns the facts on the chain if they are certain: three readings in a row agree on the used authorizations, each at
 * a block that is late enough, and each use is shown twice with the same transfer. Null if they are not certain yet. A
 * verdict against a seller, and a PASS, depend on this.
 */
export async function factsOf(ledger: Ledger, { since, notBefore, now, ...asked }: Asked): Promise<Facts | null> {
  const readings: Reading[] = [];
  while (readings.length < READINGS) readings.push(await ledger.read(asked));
  const isLate = ledger.mayLag ? readings.every(({ time }) => time >= notBefore) : now >= notBefore;
  const uses = asked.nonces.map((nonce) => readings.filter(({ used }) => used.has(nonce)).length);
  const bars = agreed(readings);
  if (!isLate || bars === null || uses.some((count) => count > 0 && count < READINGS)) return null;
  const settled = new Map<Hex, Settled>();
  for (const nonce of asked.nonces.filter((_, place) => uses[place] === READINGS)) {
    const wanted = { asset: asked.asset, from: asked.from, nonce, since };
    const [one, other] = [await ledger.transfer(wanted), await ledger.transfer(wanted)];
    if (one === null || other === null || !isSame(one, other)) return null;
    settled.set(nonce, one);
  }
  const [balance = 0n] = readings.map((one) => one.balance).sort((one, other) => (one < other ? -1 : 1));
  return { settled, returned: new Set(), balance, bars };
}

/** Returns the bars on payments if all readings agree; null otherwise. */
function agreed(readings: readonly Reading[]): ReadonlySet<Bar> | null {
  const [bars = new Set<Bar>(), ...others] = readings.map((one) => one.bars);
  const isAgreed = others.every((other) => other.size === bars.size && [...bars].every((bar) => other.has(bar)));
  return isAgreed ? bars : null;
}

const isSame = (one: Settled, other: Settled): boolean =>
  one.transaction === other.transaction &&
  one.block === other.block &&
  one.to === other.to &&
  one.value === other.value;
