import type { Block, Relay, Transaction } from "./batch.ts";
import { isUsed } from "./relay.ts";
import {
  type Authorization,
  authorizationOf,
  type Happening,
  isPaid,
  type Surroundings,
  type World,
  withAuthorization,
} from "./world.ts";

/** Returns the possible next events for the relayer's transactions on the chain. */
export function miningMoves(now: Surroundings, world: World): Happening[] {
  const { relay } = now;
  if (relay === null) return [];
  const mined = relay.transactions.flatMap((one, at) => [...mining(now, world, [at, one]), ...finalizing(now, at)]);
  return [...mined, ...strangers(now, world), ...elsewhere(now, world), ...reorganizing(now, world)];
}

/** Settlements that we did not send have lower numbers. */
const OURS = 10;
const placeIn = (at: number, block: Block): number => OURS + 2 * at + block;
const blockNow = ({ reorganized }: Surroundings): Block => (reorganized ? 2 : 1);

const withTransaction = (now: Surroundings, at: number, change: Partial<Transaction>): Surroundings => {
  const { relay } = now;
  const one = relay?.transactions[at];
  if (!relay || !one) return now;
  return { ...now, relay: { ...relay, transactions: relay.transactions.with(at, { ...one, ...change }) } };
};

/** Transactions are mined in the order of their nonces, and each call may succeed or fail. */
function mining(now: Surroundings, world: World, [at, one]: readonly [number, Transaction]): Happening[] {
  if (!one.broadcast || one.block > 0 || !isNext(now, one)) return [];
  const versions = one.replaced ? (["at its old fees", "as it is"] as const) : (["as it is"] as const);
  return masks(now, world, one.calls).flatMap((wrong) =>
    versions.map((mined) => ({
      label: `transaction ${at} is mined ${mined}, failed calls: ${wrong.length === 0 ? "none" : wrong}`,
      after: settled(withTransaction(now, at, { block: blockNow(now), wrong, mined }), at),
    })),
  );
}

const isNext = (now: Surroundings, { key, nonce }: Transaction): boolean =>
  !isUsed(now, { key, nonce }) &&
  Array.from({ length: nonce }, (_, lower) => lower).every((lower) => isUsed(now, { key, nonce: lower }));

function masks(now: Surroundings, world: World, calls: readonly number[]): number[][] {
  return calls.reduce<number[][]>(
    (some, index) => {
      const isValid = authorizationOf(now, index).onChain === "unused" && now.clock < 2;
      const succeeding = isValid ? some : [];
      const failing = isValid && !world.relay?.fails ? [] : some.map((wrong) => [...wrong, index]);
      return [...succeeding, ...failing];
    },
    [[]],
  );
}

function settled(now: Surroundings, at: number): Surroundings {
  const one = now.relay?.transactions[at];
  return (one?.calls ?? []).reduce((before, index) => {
    if (authorizationOf(before, index).onChain !== "unused") return before;
    return one?.wrong.includes(index)
      ? withAuthorization(before, index, { failed: "mined" })
      : withAuthorization(before, index, { onChain: "paid", place: placeIn(at, one?.block ?? 0), withoutUs: false });
  }, now);
}

/** A final block also makes the settlements final that its calls found. */
function finalizing(now: Surroundings, at: number): Happening[] {
  const one = now.relay?.transactions[at];
  if (!now.relay || !one || one.block === 0 || one.final || !isSettledBelow(now.relay, one)) return [];
  const after = one.calls.reduce(
    (before, index) => {
      const { onChain, failed } = authorizationOf(before, index);
      return onChain === "paid" && failed !== "mined"
        ? withAuthorization(before, index, { onChain: "paid, final" })
        : before;
    },
    withTransaction(now, at, { final: true }),
  );
  return [{ label: `transaction ${at} is final`, after }];
}

/** Returns whether all transactions with a lower nonce are final. */
const isSettledBelow = (
  { transactions, elsewhere: taken }: Relay,
  { key, nonce }: Pick<Transaction, "key" | "nonce">,
) =>
  transactions.every((one) => one.key !== key || one.nonce >= nonce || one.block === 0 || one.final) &&
  (key !== 0 || taken === null || taken.nonce >= nonce || taken.final);

/** Anyone with the signature may broadcast the authorization alone. */
function strangers(now: Surroundings, world: World): Happening[] {
  const become = (index: number, label: string, change: Partial<Authorization>): Happening => ({
    label: `authorization ${index} ${label}`,
    after: withAuthorization(now, index, change),
  });
  return now.authorizations.flatMap(({ onChain, place, left }, index) => {
    if (onChain === "paid" && place < OURS) return [become(index, "is final", { onChain: "paid, final" })];
    return world.payerBroadcasts && onChain === "unused" && now.clock < 2
      ? [become(index, "is settled by a stranger", { onChain: "paid", place: blockNow(now), withoutUs: !left })]
      : [];
  });
}

/** Another user of the key takes one of our nonces. */
function elsewhere(now: Surroundings, world: World): Happening[] {
  const { relay } = now;
  if (!(relay && world.relay?.elsewhere)) return [];
  const take = (taken: Relay["elsewhere"]): Surroundings => ({ ...now, relay: { ...relay, elsewhere: taken } });
  if (relay.elsewhere !== null) {
    const { nonce, final } = relay.elsewhere;
    return final || !isSettledBelow(relay, { key: 0, nonce })
      ? []
      : [{ label: `that use of nonce ${nonce} is final`, after: take({ nonce, final: true }) }];
  }
  const next = relay.transactions.find((one) => one.key === 0 && isNext(now, one));
  return next === undefined
    ? []
    : [{ label: `nonce ${next.nonce} is used elsewhere`, after: take({ nonce: next.nonce, final: false }) }];
}

/** Removes everything that is not final from its block. The transactions may be mined again with other results. */
function reorganizing(now: Surroundings, world: World): Happening[] {
  const { relay } = now;
  if (!relay || !world.reorganization || now.reorganized) return [];
  const isGone = ({ block, final }: Transaction) => block > 0 && !final;
  const gone = relay.transactions.filter(isGone);
  const transactions = relay.transactions.map((one) => (isGone(one) ? { ...one, ...NOWHERE } : one));
  const authorizations = now.authorizations.map((one, index): Authorization => {
    const removed = gone.some(({ calls }) => calls.includes(index)) && one.failed === "mined";
    const failed = removed ? { ...one, failed: "removed" as const } : one;
    return isPaid(one) && one.onChain === "paid"
      ? { ...failed, onChain: "unused", place: 0, withoutUs: false }
      : failed;
  });
  const taken = relay.elsewhere?.final ? relay.elsewhere : null;
  const isSame =
    gone.length === 0 && taken === relay.elsewhere && !now.authorizations.some((one) => one.onChain === "paid");
  if (isSame) return [];
  const after = { ...now, reorganized: true, authorizations, relay: { ...relay, transactions, elsewhere: taken } };
  return [{ label: "a reorganization removes what is not final", after }];
}

const NOWHERE = { block: 0, wrong: [], mined: "as it is" } as const;
