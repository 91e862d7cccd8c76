import type { View } from "../../api/platform/chain/view.ts";
import { miningMoves } from "./mining.ts";
import { failedIn } from "./relay.ts";
import {
  type Authorization,
  authorizationOf,
  type Clock,
  type Happening,
  isPaid,
  type Off,
  type Surroundings,
  settlementAt,
  type World,
  withAuthorization,
  withRow,
} from "./world.ts";

/** Returns every possible next event of the chain and the clock. */
export function chainMoves(now: Surroundings, world: World): Happening[] {
  const moves =
    now.relay === null
      ? now.authorizations.flatMap((one, index) => transfers(now, world, [index, one]))
      : miningMoves(now, world);
  const unsettled = now.authorizations.some(({ onChain }) => onChain === "paid" || onChain === "spent");
  // A final block past the window implies that earlier blocks are final.
  if (world.clock === undefined && (now.clock < 2 || (now.clock === 2 && !unsettled))) {
    const label = ["the window's margin is reached", "the head passes validBefore", "a final block passes validBefore"];
    moves.push({ label: label[now.clock] ?? "", after: { ...now, clock: (now.clock + 1) as Clock } });
  }
  if (world.bodyStopsFitting && now.bodyFits)
    moves.push({ label: "the same body stops being acceptable", after: { ...now, bodyFits: false } });
  return moves;
}

/**
 * A lease may expire at any time, whether its run crashed or is slow. A payment that is over or was never submitted is
 * pruned after its window.
 */
export function leaseMoves(now: Surroundings, world: World): Happening[] {
  if (world.calm === true) return [];
  return now.rows.flatMap((row, slot) => {
    if (row === null) return [];
    const payment = `payment ${row.authorization}`;
    const gone = (label: string, before = now) => ({
      label: `${payment} ${label}`,
      after: withRow(before, slot, null),
    });
    const unrecorded = withAuthorization(now, row.authorization, { recorded: false });
    const lost = world.restored && now.clock >= 2 ? [gone("is lost by the journal", unrecorded)] : [];
    if (row.leaseLive)
      return [
        ...lost,
        { label: `the lease of ${payment} expires`, after: withRow(now, slot, { ...row, leaseLive: false }) },
      ];
    const isPruned = row.state === "received" || (row.state === "void" && row.reason !== "reversed");
    return isPruned && now.clock === 3 ? [...lost, gone("is pruned")] : lost;
  });
}

function transfers(now: Surroundings, world: World, [index, one]: readonly [number, Authorization]): Happening[] {
  const moves: Happening[] = [];
  const become = (label: string, change: Partial<Authorization>, reorganized = now.reorganized) =>
    moves.push({
      label: `authorization ${index} ${label}`,
      after: paying(withAuthorization({ ...now, reorganized }, index, change), one, change),
    });
  const movable = world.reorganization === true && !now.reorganized;
  const { onChain, left, failed } = one;
  const over = world.reverts === "for good" && failed !== "no";
  if (onChain === "unused" && now.clock < 2 && !over && (left || world.payerBroadcasts))
    for (const place of isAffordable(now) ? placesOf(now, world) : [])
      become(`is mined in transaction ${place}`, { onChain: "paid", place, withoutUs: !left });
  if (onChain === "unused" && now.clock < 3 && world.burns)
    become("is canceled or spent elsewhere", { onChain: "spent", place: 0 });
  if (onChain === "unused" && now.clock === 2 && movable && left)
    become("is mined in an earlier-stamped block by a reorganization", { onChain: "paid", place: 2 }, true);
  if (onChain === "unused" && now.clock < 3 && world.reverts && left && failed !== "mined")
    become("is mined without settling", { failed: "mined" });
  if (failed === "mined" && onChain === "unused" && movable)
    become("is no longer mined without settling, after a reorganization", { failed: "removed" }, true);
  if (onChain === "paid") become("is final", { onChain: "paid, final" });
  if (onChain === "spent") become("is finally spent elsewhere", { onChain: "spent, final" });
  if ((onChain === "paid" || onChain === "spent") && movable)
    become("is removed by a reorganization", { onChain: "unused", place: 0, withoutUs: false }, true);
  return moves;
}

const isAffordable = ({ purse }: Surroundings): boolean => purse === null || purse.balance > 0;

/** Reduces the payer's balance when a payment settles. */
const paying = (now: Surroundings, { onChain }: Authorization, change: Partial<Authorization>): Surroundings =>
  now.purse !== null && onChain === "unused" && change.onChain === "paid"
    ? { ...now, purse: { ...now.purse, balance: now.purse.balance - 1 } }
    : now;

const placesOf = ({ reorganized }: Surroundings, { otherTransaction }: World): readonly number[] =>
  otherTransaction ? [1, 2] : [reorganized ? 2 : 1];

const REVERTED: View = { nonce: "reverted", transaction: "0xf" };

/**
 * Returns whether a failure is shown. The ledger may know a failure whose block is gone, and then its receipt cannot be
 * read.
 */
function failure(now: Surroundings, index: number, off: Off | null): "none" | "shown" | "unread" {
  if (now.relay === null) return authorizationOf(now, index).failed === "mined" ? "shown" : "none";
  const known = failedIn(now, index);
  if (known === null) return "none";
  return known.block > 0 || off === "failure-in-a-current-block" ? "shown" : "unread";
}

/**
 * Returns the possible results of one lookup. A node may lag, and a lookup makes several calls, so a use between them
 * appears as a spent nonce without its transfer. Readings of a final block are always correct.
 */
export function views(
  now: Surroundings,
  index: number,
  { world, off }: { readonly world: World; readonly off: Off | null },
): View[] {
  const one = authorizationOf(now, index);
  const { onChain, place } = one;
  const expired: View = { nonce: "dead", reason: "expired" };
  const unused = now.clock >= (off === "final-block-expires" ? 2 : 3) ? expired : ({ nonce: "unused" } as const);
  const failed = failure(now, index, off);
  const reverted: View[] = failed === "shown" && unused.nonce === "unused" ? [REVERTED] : [];
  const before = now.older?.[index];
  if (before && isPaid(before) && !isPaid(one))
    return [unused, { nonce: "paid", settlement: settlementAt(before.place), final: false }];
  switch (onChain) {
    case "unused":
      if (failed === "unread" && unused.nonce === "unused") return [];
      return reverted.length === 0 || world.lag ? [unused, ...reverted] : reverted;
    case "paid":
    case "paid, final": {
      const final = onChain === "paid, final";
      const reported = off !== "found-by-nonce" || place === 1;
      const shown: View = reported ? { nonce: "paid", settlement: settlementAt(place), final } : { nonce: "unused" };
      const older = off === "failure-at-its-block" ? reverted : [];
      return world.lag && !final ? [shown, unused, { nonce: "spent" }, ...older] : [shown];
    }
    default: {
      if (off === "paired-transfer") return [{ nonce: "paid", settlement: settlementAt(1), final: false }];
      const consumed = onChain === "spent, final" || off === "final-block-burns";
      return [consumed ? { nonce: "dead", reason: "nonce_consumed" } : { nonce: "spent" }];
    }
  }
}
