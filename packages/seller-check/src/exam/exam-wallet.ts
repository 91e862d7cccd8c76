import { type Address, type Hex, isAddressEqual } from "viem";
import { type Facts, factsOf } from "./chain-facts.ts";
import { ExaminersFault } from "./examiners-fault.ts";
import type { HoldKey } from "./hold.ts";
import type { HoldState, Ledger } from "./ledger.ts";
import type { Payer, Payment } from "./payment.ts";
import type { Terms } from "./terms.ts";
import { usdc } from "./usdc.ts";

/** No seller is paid more often in one exam. */
export const MOST_PAYMENTS = 3;
/** What a payment that is forged for less may settle. */
const MOST_FORGED = 1n;
/** How long the chain gets to show what a seller has settled, in seconds. */
const SETTLES_WITHIN = 30;
/** How long the chain is waited for at the end, where the exam may take its time, in seconds. */
const READ_WITHIN = 90;
/** And so long at least, whenever that is: a seller who takes its time must not end an exam without a word about it. */
const READ_FOR = 30;
const LOOK_AGAIN_MS = 1_000;

/** What an exam knows of its money. */
export interface ExamWallet {
  /** An authorization that is signed from now on. */
  readonly noted: (nonce: Hex) => void;
  /** In Unix seconds: our clock or the chain's, whichever is later. */
  readonly signingTime: () => Promise<number>;
  /** @throws ExaminersFault unless the payer has what all payments of an exam come to, and the token moves it */
  readonly requireFunds: (terms: Terms) => Promise<void>;
  /** Whether one look shows that a payment has settled; false says nothing. */
  readonly isShown: (terms: Terms, payment: Payment) => Promise<boolean>;
  /** Waits until the chain shows what was sold for this payment, and no longer than sellers have for it. */
  readonly untilShown: (terms: Terms, payment: Payment) => Promise<void>;
  /**
   * What has become of everything that was signed, as of the last answer.
   * @throws ExaminersFault if the chain does not say, or the payer lacks the money for what was not charged
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
  /** As quoted, so far. */
  readonly payments: readonly Payment[];
  /** When the last answer came, in Unix seconds. */
  readonly answeredAt: () => number;
}

/** What a till works with, and what it has seen. */
interface OpenExamWallet extends Visited {
  readonly ledger: Ledger;
  readonly from: Address;
  /** The block before the exam. */
  readonly since: bigint;
  /** Of all that was signed. */
  readonly nonces: Hex[];
  /** When answers came for which a payment was due, by its nonce, in Unix seconds. */
  readonly sold: Map<Hex, number>;
  /** Payments that a look has shown: one that is gone at the end was taken by a reorganization, and by no seller. */
  readonly shown: Set<Hex>;
  readonly sleep: ExamWalletParts["sleep"];
  readonly now: () => number;
  readonly endsAt: number;
}

/** @throws ExaminersFault if the chain cannot be read */
export async function openExamWallet(parts: ExamWalletParts, visited: Visited): Promise<ExamWallet> {
  const { ledger, payer, sleep, now = Date.now, endsAt = Number.POSITIVE_INFINITY } = parts;
  const since = await ours(ledger.block());
  const from = payer.address;
  const empty = { nonces: [], sold: new Map(), shown: new Set<Hex>() };
  const wallet: OpenExamWallet = { ...visited, ...empty, ledger, from, since, sleep, now, endsAt };
  return {
    noted: (nonce) => void wallet.nonces.push(nonce),
    // A node that lags must not make a signature expire early, nor our clock that for a chain ahead of it.
    signingTime: async () => Math.max(await ours(ledger.now()), Math.floor(Date.now() / 1000)),
    requireFunds: (terms) => requireFunds(wallet, terms),
    isShown: (terms, payment) => isShown(wallet, terms, payment),
    untilShown: (terms, payment) => untilShown(wallet, terms, payment),
    facts: (terms) => factsAtLast(wallet, terms),
  };
}

async function requireFunds({ ledger, from }: OpenExamWallet, { asset, amount, payTo }: Terms): Promise<void> {
  const { balance, bars } = await ours(ledger.read({ asset, from, payee: payTo, nonces: [] }));
  requireMoving(bars, { asset, from });
  const needed = BigInt(MOST_PAYMENTS) * amount + MOST_FORGED;
  if (balance >= needed) return;
  const has = `The account ${from} has ${usdc(balance)} (token ${asset})`;
  throw new ExaminersFault(`${has}, and an exam needs ${usdc(needed)}.`);
}

const isShown = (
  { ledger, from, since, shown }: OpenExamWallet,
  { asset }: Terms,
  { authorization: { nonce } }: Payment,
) =>
  ledger.transfer({ asset, from, nonce, since }).then(
    (found) => found !== null && shown.add(nonce).has(nonce),
    () => false,
  );

async function untilShown(wallet: OpenExamWallet, terms: Terms, payment: Payment): Promise<void> {
  const { sold, now, endsAt, sleep } = wallet;
  const at = now() / 1000;
  sold.set(payment.authorization.nonce, at);
  const until = Math.min((at + SETTLES_WITHIN) * 1000, endsAt);
  while (!(await isShown(wallet, terms, payment)) && now() < until) await sleep(LOOK_AGAIN_MS / 2);
}

/** Reads until what was sold is shown, or counts as not charged. */
async function factsAtLast(wallet: OpenExamWallet, { asset, amount, payTo }: Terms): Promise<Facts> {
  const { ledger, from, since, nonces, shown, payments, answeredAt, now, endsAt, sleep } = wallet;
  const until = Math.max(now() + READ_FOR * 1000, Math.min(now() + READ_WITHIN * 1000, endsAt));
  let [notBefore, cause]: [number, unknown] = [answeredAt(), undefined];
  for (;;) {
    const asked = { asset, from, payee: payTo, nonces, since, notBefore, now: now() / 1000 };
    const found = await factsOf(ledger, asked).catch((error: unknown) => {
      cause = error;
      return null;
    });
    const due = found === null ? notBefore : dueBy(wallet, found);
    const isGone = found !== null && [...shown].some((nonce) => !found.settled.has(nonce));
    if (found !== null && !isGone && due <= notBefore)
      return payable(await withReturned(wallet, found), { asset, from, amount, payments });
    notBefore = due;
    if (now() >= until)
      throw new ExaminersFault("The chain does not show what became of the exam's payments.", { cause });
    await sleep(LOOK_AGAIN_MS);
  }
}

/** Where an arbiter sends a refused payment back, it needs a moment: what is still held is looked at again for a while. */
async function withReturned(wallet: OpenExamWallet, facts: Facts): Promise<Facts> {
  const { payments, answeredAt, now, sleep } = wallet;
  const until = (answeredAt() + SETTLES_WITHIN) * 1000;
  const held = payments.filter(({ authorization: { nonce } }) => facts.settled.has(nonce));
  for (;;) {
    const states = new Map<Hex, HoldState>();
    for (const { hold, authorization } of held)
      if (hold !== null) states.set(authorization.nonce, await stateOf(wallet, hold));
    const isOpen = [...states.values()].includes("held");
    const returned = new Set([...states].filter(([, state]) => state === "returned").map(([nonce]) => nonce));
    if (!isOpen || now() >= until) return { ...facts, returned };
    await sleep(LOOK_AGAIN_MS);
  }
}

/** A node that lags shows a hold where another one shows its end, so one of several readings suffices. */
async function stateOf({ ledger }: OpenExamWallet, hold: HoldKey): Promise<HoldState> {
  const states = [await ours(ledger.hold(hold)), await ours(ledger.hold(hold)), await ours(ledger.hold(hold))];
  return states.find((state) => state === "returned" || state === "captured") ?? "held";
}

/** From when on what was sold and is not shown counts as not charged. */
const dueBy = ({ answeredAt, sold }: OpenExamWallet, { settled }: Facts): number =>
  Math.max(answeredAt(), ...[...sold].filter(([nonce]) => !settled.has(nonce)).map(([, at]) => at + SETTLES_WITHIN));

interface Paying {
  readonly asset: Address;
  readonly from: Address;
}

/** The payee's place on a blacklist is its own affair. @throws ExaminersFault if nobody is paid, or by nobody like us */
function requireMoving(bars: Facts["bars"], { asset, from }: Paying): void {
  if (bars.has("paused")) throw new ExaminersFault(`The token ${asset} is paused.`);
  if (bars.has("payer")) throw new ExaminersFault(`The token ${asset} has the account ${from} on its blacklist.`);
}

interface Owed extends Paying {
  readonly amount: bigint;
  readonly payments: readonly Payment[];
}

/** A payment that was refused while it could not have settled says nothing about the seller. */
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

/** Without the node's URL, which viem adds to its messages and which may hold a key. */
function briefly(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "shortMessage" in error ? String(error.shortMessage) : error.message;
}

/** All that settled authorizations have moved to others and that has not come back, in atomic units. */
export const spentBy = (account: Address, { settled, returned }: Facts): bigint =>
  [...settled]
    .filter(([nonce, { to }]) => !returned.has(nonce) && !isAddressEqual(to, account))
    .reduce((sum, [, { value }]) => sum + value, 0n);
