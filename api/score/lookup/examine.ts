import { COUNTERPARTY_BANDS, INDEPENDENCE, LOOKUPS } from "../../../packages/verifier/src/score/bands.ts";
import type { PayerFact } from "../../../packages/verifier/src/score/facts.ts";
import { otherFunders } from "../../../packages/verifier/src/score/funders.ts";
import type { Address } from "../../platform/wallet.ts";
import { funderAt, type Inflows } from "./inflows.ts";

/** More independent counterparties earn no more points. */
const ENOUGH = COUNTERPARTY_BANDS.at(-1)?.from ?? 0;

export interface Payer {
  readonly payer: Address;
  /** The block in which its payments to the payee reached the floor. */
  readonly block: number;
}

export interface Payee {
  readonly payee: Address;
  /** All authorized payments of the wallet to it, in atomic USDC, and what of it is not paid out. */
  readonly atomic: bigint;
  readonly unpaid: bigint;
  readonly isInWindow: boolean;
  /** The block in which the wallet's payments to it reached the floor. */
  readonly block: number;
  /** How many others pay it. */
  readonly otherPayers: number;
  /** The newest payers without the wallet, newest first. */
  readonly payers: readonly Payer[];
}

/** What the index knows of a wallet's payees, the newest first. */
export interface Payees {
  readonly wallet: Address;
  readonly payees: readonly Payee[];
}

/** What a look-up found about one payee. */
export interface LookedPayee {
  readonly returned: string;
  readonly funder_at_floor: Address | null;
  readonly payers: readonly PayerFact[];
}

export interface Examined {
  readonly largestFunder: Address | null;
  readonly payees: Readonly<Record<Address, LookedPayee>>;
}

/** Up to which block the inflows of these wallets are needed. */
export type Needed = ReadonlyMap<Address, number>;

/** Inflows that have been read at least to a block. */
export interface Known {
  readonly inflows: Inflows;
  readonly through: number;
}

const covers = (known: Known | undefined, block: number): known is Known =>
  known !== undefined && (known.through >= block || known.inflows.fullAt !== null);

/** Whether anything about this payee depends on what can be looked up. */
const matters = ({ isInWindow, otherPayers, atomic, unpaid }: Payee): boolean =>
  isInWindow && otherPayers >= INDEPENDENCE.otherFunders && !isSentBack(unpaid, atomic);

const isSentBack = (returned: bigint, atomic: bigint): boolean =>
  returned * 100n >= atomic * BigInt(INDEPENDENCE.sentBackBelowPercent);

/** Whether a wallet's score depends on what can be looked up. */
export const needsLookup = ({ payees }: Payees): boolean => payees.some(matters);

/**
 * What follows from the inflows that are known, as of block `through`, or whose inflows are needed first. Only the chain
 * decides what is examined, and in which order: payees from the newest, of each the payers from the newest until it is
 * shown to be independent, and no more payees than earn points.
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
  /** The payers of all payees so far. */
  readonly asked: Set<Address>;
  readonly needed: Map<Address, number>;
}

/** The newest payers up to the one with which their funders are enough. Those that are needed for that are added. */
function examinePayers(payee: Payee, { circle, known, through, asked, needed }: Examining): readonly PayerFact[] {
  const facts: PayerFact[] = [];
  let missing = 0;
  for (const { payer, block } of payee.payers) {
    const lacking = INDEPENDENCE.otherFunders - otherFunders(facts, circle);
    // Those that are needed may suffice; more are asked for when they do not.
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
