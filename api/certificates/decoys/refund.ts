import { createHash } from "node:crypto";
import type { Transfer } from "../../platform/chain/usdc.ts";
import type { Authorization, Head } from "../../platform/chain/view.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { SESSION_PRICES } from "../kinds/kind.ts";
import type { Debt, DecoyOf, Entry } from "./store.ts";

/** How long an address is watched after its session. */
export const WATCHED_DAYS = 90;
/**
 * The smallest refund: the price of a decoy's order. Smaller sums wait until the same sender's total reaches it,
 * because every refund costs gas.
 */
export const LEAST_REFUND = SESSION_PRICES.control;
/** Limits what refunds can cost in gas. Refunds beyond it wait. */
export const REFUNDS_A_DAY = 200;
export const REFUNDS_A_PASS = 10;
/** The sender of newly minted money, which cannot be returned. */
export const ZERO_ADDRESS: Address = "0x0000000000000000000000000000000000000000";

const VALID_SECONDS = 3_600n;
/** A refund with less time left than this is not worth its gas. */
const MARGIN_SECONDS = 60n;

/**
 * The nonce of a sender's next refund. It stays the same until a final block shows the last one, whatever its value, so
 * that money is returned only once, even if our own records are lost.
 */
const refundNonce = ({ decoy, sender, returned }: Pick<Debt, "decoy" | "sender" | "returned">): Hex =>
  `0x${createHash("sha256").update(`refund|${decoy}|${sender}|${returned}`).digest("hex")}`;

/** The refund to submit now. `isNew` means that it must be recorded first. */
export interface Refund {
  readonly authorization: Authorization;
  readonly isNew: boolean;
}

/**
 * Returns the refund of a debt: the pending one while it can still settle, otherwise all that is owed. Null if it is
 * too late for the pending one and too early for another. `now` is in Unix seconds.
 */
export function refundOf(debt: Debt, now: bigint, final: Head): Refund | null {
  const { pending, received, returned } = debt;
  const isDead = pending === null || final.time >= pending.validBefore;
  if (!isDead && now + MARGIN_SECONDS > pending.validBefore) return null;
  const { value, validBefore } = isDead ? { value: received - returned, validBefore: now + VALID_SECONDS } : pending;
  const authorization = {
    from: debt.decoy,
    to: debt.sender,
    value,
    validAfter: 0n,
    validBefore,
    nonce: refundNonce(debt),
  };
  return { authorization, isNew: isDead };
}

/**
 * Returns the entries of these transfers in the decoys' books. A transfer of zero has no entry, because anyone can send
 * one in anyone's name.
 */
export function entriesOf(transfers: readonly Transfer[], decoys: readonly DecoyOf[]): readonly Entry[] {
  const sessions = new Map(decoys.map(({ address, session }) => [address, session]));
  return transfers.flatMap(({ from, to, ...transfer }): Entry[] => {
    const incoming = sessions.get(to);
    const outgoing = sessions.get(from);
    if (transfer.value === 0n) return [];
    if (incoming !== undefined) return [{ ...transfer, decoy: to, session: incoming, other: from, outgoing: false }];
    return outgoing === undefined ? [] : [{ ...transfer, decoy: from, session: outgoing, other: to, outgoing: true }];
  });
}
