import { COUNTERPARTY_BANDS, INDEPENDENCE, LOOKUPS } from "../../../packages/verifier/src/score/bands.ts";
import type { PayerFact } from "../../../packages/verifier/src/score/facts.ts";
import { otherFunders } from "../../../packages/verifier/src/score/funders.ts";
import type { Address } from "../../platform/wallet.ts";
import { funderAt, type Inflows } from "./inflows.ts";

/** More independent counterparties than this earn no more points. */
const ENOUGH = COUNTERPARTY_BANDS.at(-1)?.from ?? 0;

export interface Payer {
  readonly payer: Address;
  /** The block in which its payments to the payee reached the floor. */
  readonly block: number;
}

export interface Payee {
  readonly payee: Address;
  /** All authorized payments of the wallet to it, in atomic USDC, and the part that it has not paid out. */
  readonly atomic: bigint;
  readonly unpaid: bigint;
  readonly isInWindow: boolean;
  /** The block in which the wallet's payments to it reached the floor. */
  readonly block: number;
  readonly otherPayers: number;
  /** The newest payers other than the wallet, newest first. */
  readonly payers: readonly Payer[];
}

export interface Payees {
  readonly wallet: Address;
  readonly payees: readonly Payee[];
}

export interface LookedPayee {
  readonly returned: string;
  readonly funder_at_floor: Address | null;
  readonly payers: readonly PayerFact[];
}

export interface Examined {
  readonly largestFunder: Address | null;
  readonly payees: Readonly<Record<Address, LookedPayee>>;
}

/** The block up to which each wallet's inflows are needed. */
export type Needed = ReadonlyMap<Address, number>;

/** Inflows that have been read at least up to a block. */
export interface Known {
  readonly inflows: Inflows;
  readonly through: number;
}

const covers = (known: Known | undefined, block: number): known is Known =>
  known !== undefined && (known.through >= block || known.inflows.fullAt !== null);

/** Returns whether this payee's part of the score depends on a look-up. */
const matters = ({ isInWindow, otherPayers, atomic, unpaid }: Payee): boolean =>
  isInWindow && otherPayers >= INDEPENDENCE.otherFunders && !isSentBack(unpaid, atomic);

const isSentBack = (returned: bigint, atomic: bigint): boolean =>
  returned * 100n >= atomic * BigInt(INDEPENDENCE.sentBackBelowPercent);

/** Returns whether a wallet's score depends on a look-up. */
export const needsLookup = ({ payees }: Payees): boolean => payees.some(matters);

/**
 * Returns the result as of block `through`, or the wallets whose inflows are needed first. The chain alone determines
 * what is examined, and in which order: the newest payees first, each payee's newest payers until it is shown to be
 * independent, and no more payees than earn points.
 */
export function examine(
  { wallet, payees }: Payees,
  known: ReadonlyMap<Address, Known>,
  through: number,
): Examined | { readonly needed: Needed } {
  const me = known.get(wallet);
  const isKnown = covers(me, through);
  const needed = new Map<Address, number>(isKnown ? [] : [[wallet, through]]);
  const largestFunder = isKnown ? funderAt(me.inflows, through) : null;
  const found: Record<Address, LookedPayee> = {};
  const asked = new Set<Address>();
  let independent = 0;
  for (const payee of payees) {
    const sent = BigInt(me?.inflows.sent[payee.payee] ?? 0) + payee.unpaid;
    const funder = isKnown ? funderAt(me.inflows, Math.min(payee.block, through)) : null;
    const circle = { wallet, payee: payee.payee, funders: [largestFunder, funder] };
    const isOpen =
      matters(payee) &&
      independent < ENOUGH &&
      me?.inflows.fullAt == null &&
      !isSentBack(sent, payee.atomic) &&
      !circle.funders.includes(payee.payee);
    const payers = isOpen ? examinePayers(payee, { circle, known, through, asked, needed }) : [];
    found[payee.payee] = { returned: String(sent), funder_at_floor: funder, payers };
    if (isOpen && otherFunders(payers, circle) >= INDEPENDENCE.otherFunders) independent += 1;
  }
  return needed.size > 0 ? { needed } : { largestFunder, payees: found };
}

interface Examining {
  readonly circle: Parameters<typeof otherFunders>[1];
  readonly known: ReadonlyMap<Address, Known>;
  readonly through: number;
  /** The payers already examined, of all payees. */
  readonly asked: Set<Address>;
  readonly needed: Map<Address, number>;
}

/** Examines the newest payers until their funders suffice. Adds the payers whose inflows are needed for that. */
function examinePayers(payee: Payee, { circle, known, through, asked, needed }: Examining): readonly PayerFact[] {
  const facts: PayerFact[] = [];
  let missing = 0;
  for (const { payer, block } of payee.payers) {
    const lacking = INDEPENDENCE.otherFunders - otherFunders(facts, circle);
    // The payers added so may suffice; more are added only if they do not.
    if (lacking <= missing) break;
    if (!asked.has(payer) && asked.size >= LOOKUPS.payers) continue;
    asked.add(payer);
    const at = Math.min(block, through);
    const its = known.get(payer);
    if (!covers(its, at)) {
      missing += 1;
      needed.set(payer, Math.max(at, needed.get(payer) ?? 0));
    } else facts.push({ payer, block: at, funder: funderAt(its.inflows, at) });
  }
  return facts;
}
