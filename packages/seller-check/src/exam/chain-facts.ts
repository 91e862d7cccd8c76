import type { Hex } from "viem";
import type { Authorizations, Bar, Ledger, Reading, Settled } from "./ledger.ts";

/** What has become of an exam's authorizations. */
export interface Facts {
  /** By nonce. What is not here had not settled. */
  readonly settled: ReadonlyMap<Hex, Settled>;
  /** Of what settled into a hold, what the payer has got back. */
  readonly returned: ReadonlySet<Hex>;
  /** The least that any node showed of what the payer has left, in atomic units. */
  readonly balance: bigint;
  /** What kept payments from settling at the end. */
  readonly bars: ReadonlySet<Bar>;
}

export interface Asked extends Authorizations {
  /** The block before the exam. */
  readonly since: bigint;
  /** In Unix seconds: no node that has not come so far counts. */
  readonly notBefore: number;
  /** Our clock, in Unix seconds. */
  readonly now: number;
}

/** Nodes behind one address take turns: of so many readings, one is of a node that keeps up. */
const READINGS = 3;

/**
 * What the chain shows, where that can be told: three readings in a row agree on what is used, each at a block that is
 * late enough, and each use is shown twice with the same transfer. Null if it cannot be told yet. A verdict against a
 * seller, and a PASS, rest on this.
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

/** What bars payments, where all readings show the same; null where they do not. */
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
