import { type Address, type Hex, isAddressEqual } from "viem";
import { type Facts, factsOf } from "./chain-facts.ts";
import type { HoldKey } from "./hold.ts";
import type { HoldState, Ledger } from "./ledger.ts";
import { ExaminersFault } from "./ledger.ts";
import type { Payer, Payment } from "./payment.ts";
import type { Terms } from "./terms.ts";
import { usdc } from "./terms.ts";

/** The maximum number of payments to a seller in one exam. */
export const MOST_PAYMENTS = 3;
/** The maximum amount that a forged payment can settle. */
const MOST_FORGED = 1n;
/** The time for the chain to show a seller's settlement, in seconds. */
const SETTLES_WITHIN = 30;
/** The longest wait for the chain at the end, if the exam may take its time, in seconds. */
const READ_WITHIN = 90;
/** The minimum wait, whatever the deadline, so that a slow seller cannot end an exam without a result. */
const READ_FOR = 30;
const LOOK_AGAIN_MS = 1_000;

/** The state of an exam's money. */
export interface ExamWallet {
  /** Notes an authorization that is signed from now on. */
  readonly noted: (nonce: Hex) => void;
  /** Unix seconds: our clock or the chain's, whichever is later. */
  readonly signingTime: () => Promise<number>;
  /** @throws ExaminersFault unless the payer can afford all payments of an exam, and the token can be transferred */
  readonly requireFunds: (terms: Terms) => Promise<void>;
  /** Whether one reading shows that a payment has settled; false proves nothing. */
  readonly isShown: (terms: Terms, payment: Payment) => Promise<boolean>;
  /** Waits until the chain shows the sale for this payment, but no longer than sellers have for it. */
  readonly untilShown: (terms: Terms, payment: Payment) => Promise<void>;
  /**
   * Returns the outcome of everything that was signed, as of the last response.
   * @throws ExaminersFault if the chain does not show it, or the payer lacks the money for uncharged payments
   */
  readonly facts: (terms: Terms) => Promise<Facts>;
}

export interface ExamWalletParts {
  readonly ledger: Ledger;
  readonly payer: Pick<Payer, "address">;
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly now?: () => number;
  readonly endsAt?: number;
}

interface Visited {
  /** The payments as quoted, until now. */
  readonly payments: readonly Payment[];
  /** The time of the last response, in Unix seconds. */
  readonly answeredAt: () => number;
}

/** @throws ExaminersFault if the chain cannot be read */
export async function openExamWallet(
  { ledger, payer: { address: from }, sleep, now = Date.now, endsAt = Number.POSITIVE_INFINITY }: ExamWalletParts,
  { payments, answeredAt }: Visited,
): Promise<ExamWallet> {
  /** The block before the exam. */
  const since = await ours(ledger.block());
  /** The nonces of everything that was signed. */
  const nonces: Hex[] = [];
  /** The times of responses for which a payment was due, by its nonce, in Unix seconds. */
  const sold = new Map<Hex, number>();
  /** Payments that a reading has shown; if one is gone at the end, a reorganization removed it, not the seller. */
  const shown = new Set<Hex>();
  return {
    noted: (nonce) => void nonces.push(nonce),
    // A lagging node must not make a signature expire early, and neither must our clock if the chain is ahead of it.
    signingTime: async () => Math.max(await ours(ledger.now()), Math.floor(Date.now() / 1000)),
    requireFunds,
    isShown,
    untilShown,
    facts,
  };

  async function requireFunds({ asset, amount, payTo }: Terms): Promise<void> {
    const { balance, bars } = await ours(ledger.read({ asset, from, payee: payTo, nonces: [] }));
    requireMoving(bars, { asset, from });
    const needed = BigInt(MOST_PAYMENTS) * amount + MOST_FORGED;
    if (balance >= needed) return;
    const has = `The account ${from} has ${usdc(balance)} (token ${asset})`;
    throw new ExaminersFault(`${has}, but an exam needs ${usdc(needed)}.`);
  }

  function isShown({ asset }: Terms, { authorization: { nonce } }: Payment): Promise<boolean> {
    return ledger.transfer({ asset, from, nonce, since }).then(
      (found) => found !== null && shown.add(nonce).has(nonce),
      () => false,
    );
  }

  async function untilShown(terms: Terms, payment: Payment): Promise<void> {
    const at = now() / 1000;
    sold.set(payment.authorization.nonce, at);
    const until = Math.min((at + SETTLES_WITHIN) * 1000, endsAt);
    while (!(await isShown(terms, payment)) && now() < until) await sleep(LOOK_AGAIN_MS / 2);
  }

  /** Reads until every sale is shown, or counts as not charged. */
  async function facts({ asset, amount, payTo }: Terms): Promise<Facts> {
    const until = Math.max(now() + READ_FOR * 1000, Math.min(now() + READ_WITHIN * 1000, endsAt));
    let [notBefore, cause]: [number, unknown] = [answeredAt(), undefined];
    for (;;) {
      const asked = { asset, from, payee: payTo, nonces, since, notBefore, now: now() / 1000 };
      const found = await factsOf(ledger, asked).catch((error: unknown) => {
        cause = error;
        return null;
      });
      const due = found === null ? notBefore : dueBy(found);
      const isGone = found !== null && [...shown].some((nonce) => !found.settled.has(nonce));
      if (found !== null && !isGone && due <= notBefore)
        return payable(await withReturned(found), { asset, from, amount, payments });
      notBefore = due;
      if (now() >= until)
        throw new ExaminersFault("The chain does not show the outcome of the exam's payments.", { cause });
      await sleep(LOOK_AGAIN_MS);
    }
  }

  /** Returns the time from which an unshown sale counts as not charged. */
  function dueBy({ settled }: Facts): number {
    const unshown = [...sold].filter(([nonce]) => !settled.has(nonce));
    return Math.max(answeredAt(), ...unshown.map(([, at]) => at + SETTLES_WITHIN));
  }

  /**
   * An arbiter needs a moment to return a refused payment, so payments that are still held are read again for a while.
   */
  async function withReturned(found: Facts): Promise<Facts> {
    const until = (answeredAt() + SETTLES_WITHIN) * 1000;
    const held = payments.filter(({ authorization: { nonce } }) => found.settled.has(nonce));
    for (;;) {
      const states = new Map<Hex, HoldState>();
      for (const { hold, authorization } of held)
        if (hold !== null) states.set(authorization.nonce, await stateOf(hold));
      const isOpen = [...states.values()].includes("held");
      const returned = new Set([...states].filter(([, state]) => state === "returned").map(([nonce]) => nonce));
      if (!isOpen || now() >= until) return { ...found, returned };
      await sleep(LOOK_AGAIN_MS);
    }
  }

  /** A lagging node shows a hold where another shows its end, so one of several readings suffices. */
  async function stateOf(hold: HoldKey): Promise<HoldState> {
    const states = [await ours(ledger.hold(hold)), await ours(ledger.hold(hold)), await ours(ledger.hold(hold))];
    return states.find((state) => state === "returned" || state === "captured") ?? "held";
  }
}

interface Paying {
  readonly asset: Address;
  readonly from: Address;
}

/** A blacklisted payee is not our fault. @throws ExaminersFault if the token is paused or our account is blacklisted */
function requireMoving(bars: Facts["bars"], { asset, from }: Paying): void {
  if (bars.has("paused")) throw new ExaminersFault(`The token ${asset} is paused.`);
  if (bars.has("payer")) throw new ExaminersFault(`The token ${asset} has the account ${from} on its blacklist.`);
}

interface Owed extends Paying {
  readonly amount: bigint;
  readonly payments: readonly Payment[];
}

/** A payment that was refused while it could not have settled proves nothing about the seller. */
function payable(facts: Facts, { asset, from, amount, payments }: Owed): Facts {
  const isOpen = payments.some(({ authorization }) => !facts.settled.has(authorization.nonce));
  if (!isOpen) return facts;
  requireMoving(facts.bars, { asset, from });
  if (facts.balance >= amount) return facts;
  const left = `it has ${usdc(facts.balance)} left, and a payment is ${usdc(amount)}`;
  throw new ExaminersFault(`The account ${from} ran short of money during the exam: ${left}.`);
}

const ours = <T>(reading: Promise<T>): Promise<T> =>
  reading.catch((error: unknown) => {
    if (error instanceof ExaminersFault) throw error;
    throw new ExaminersFault(`The chain cannot be read: ${briefly(error)}`, { cause: error });
  });

/** Omits the node's URL, which viem adds to its messages and which may contain a key. */
function briefly(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "shortMessage" in error ? String(error.shortMessage) : error.message;
}

/** Returns the total that settled authorizations moved to others and that was not returned, in atomic units. */
export const spentBy = (account: Address, { settled, returned }: Facts): bigint =>
  [...settled]
    .filter(([nonce, { to }]) => !returned.has(nonce) && !isAddressEqual(to, account))
    .reduce((sum, [, { value }]) => sum + value, 0n);
