import type { Entry, Relay, Transaction } from "./batch.ts";
import {
  authorizationOf,
  canSettle,
  type Off,
  type Process,
  type Surroundings,
  type World,
  withAuthorization,
} from "./world.ts";

/**
 * Settlement in batches, with the queues of the processes and their shared ledger. Any waiting payments may form a
 * batch, in one process or in several.
 */

interface Bounded {
  readonly world: World;
  readonly off: Off | null;
}

/** A move of the relayer outside of runs. */
export interface Relayed {
  readonly label: string;
  readonly after: Surroundings;
  readonly broken: string | null;
}

const withRelay = (now: Surroundings, change: (relay: Relay) => Partial<Relay>): Surroundings =>
  now.relay === null ? now : { ...now, relay: { ...now.relay, ...change(now.relay) } };

const sorted = (queue: readonly Entry[]): Entry[] =>
  queue.toSorted((a, b) => a.authorization - b.authorization || Number(a.holds) - Number(b.holds) || a.key - b.key);

const entryOf = ({ sent, holds }: Process, key: number): Entry => ({ authorization: sent.authorization, holds, key });

/** Returns the states after a payment is queued, one for each key that its process may use. */
export const queued = (now: Surroundings, process: Process, world: World): Surroundings[] =>
  Array.from({ length: world.relay?.keys ?? 1 }, (_, key) =>
    withRelay(now, ({ queue }) => ({ queue: sorted([...queue, entryOf(process, key)]) })),
  );

/** Removes the payment of a run that stopped waiting or whose process crashed from the queue. */
export const withdrawn = (now: Surroundings, process: Process): Surroundings =>
  withRelay(now, ({ queue }) => {
    const own = queue.findIndex(
      ({ authorization, holds }) => authorization === process.sent.authorization && holds === process.holds,
    );
    return { queue: own < 0 ? queue : queue.toSpliced(own, 1) };
  });

/** Marks the queued payments of a row whose lease token has changed as no longer current. */
export const bereft = (now: Surroundings, slot: number): Surroundings =>
  now.relay?.queue.some(({ authorization, holds }) => authorization === slot && holds)
    ? withRelay(now, ({ queue }) => ({
        queue: sorted(queue.map((one) => (one.authorization === slot ? { ...one, holds: false } : one))),
      }))
    : now;

/** Returns every batch that may form now, with all its outcomes. */
export function forming(bounded: Bounded, now: Surroundings): Relayed[] {
  const least = bounded.world.relay?.least ?? 1;
  return subsets(now.relay?.queue ?? [])
    .filter(({ length }) => length >= least)
    .flatMap((entries) => formed(bounded, now, entries));
}

function subsets(queue: readonly Entry[]): Entry[][] {
  const all = Array.from({ length: 2 ** queue.length }, (_, bits) => queue.filter((_, at) => bits & (1 << at)));
  return all.filter(([first, ...rest]) => first !== undefined && rest.every(({ key }) => key === first.key));
}

function formed({ world, off }: Bounded, now: Surroundings, entries: readonly Entry[]): Relayed[] {
  const emptied = withRelay(now, ({ queue }) => ({ queue: queue.filter((entry) => !entries.includes(entry)) }));
  const members = membersAmong(now, entries, off);
  const wanted = [...new Set(entries.map(({ authorization }) => authorization))];
  const nothing: Relayed = { label: `none of ${wanted} enters a batch`, after: emptied, broken: null };
  if (members.length === 0) return [nothing];
  const calls = off === "only-members-are-carried" ? wanted : members;
  const sent = (stored: Partial<Transaction>) =>
    sending(emptied, { ...NEW, calls, key: entries[0]?.key ?? 0, ...stored });
  const broken = brokenByForming(now, world, calls);
  const batch = `a batch of ${calls}`;
  const done: Relayed = {
    label: `${batch} is committed and broadcast`,
    after: sent({ stored: "sent", members, broadcast: true }),
    broken,
  };
  if (world.calm === true) return [done];
  // A process that crashes or gets no acknowledgment does not broadcast. Its batch may still be stored.
  const kept = { label: `${batch} is committed, not broadcast`, after: sent({ stored: "sent", members }), broken };
  const lost = { label: `${batch} is not committed`, after: emptied, broken: null };
  const stray = { label: `${batch} is broadcast, not committed`, after: sent({ broadcast: true }), broken };
  return [done, kept, off === "committed-before-broadcast" ? stray : lost];
}

/** Returns the members that the statement inserts, which need a current lease and are never inserted twice. */
function membersAmong(now: Surroundings, entries: readonly Entry[], off: Off | null): number[] {
  const isOurs = ({ authorization, holds }: Entry): boolean => {
    const state = now.rows[authorization]?.state;
    return (holds || off === "joined-to-its-lease") && (state === "settling" || state === "fulfilled");
  };
  const isMember = ({ authorization, key }: Entry): boolean =>
    off !== "one-member" &&
    (now.relay?.transactions ?? []).some(
      (one) => one.members.includes(authorization) && (one.key === key || off !== "member-of-any-key"),
    );
  const inserted = entries.filter((entry) => isOurs(entry) && !isMember(entry));
  return [...new Set(inserted.map(({ authorization }) => authorization))];
}

const NEW: Transaction = {
  key: 0,
  nonce: 0,
  calls: [],
  members: [],
  failed: [],
  stored: "never",
  storedBlock: 0,
  broadcast: false,
  replaced: false,
  block: 0,
  final: false,
  wrong: [],
  mined: "as it is",
};

/** Stores a transaction, which any process may broadcast from then on. */
function sending(now: Surroundings, transaction: Transaction): Surroundings {
  const nonce = nextNonce(now, transaction.key);
  const leaving = transaction.calls.reduce(
    (before, index) => withAuthorization(before, index, { left: true, failed: "no" }),
    now,
  );
  return withRelay(leaving, ({ transactions }) => ({ transactions: [...transactions, { ...transaction, nonce }] }));
}

/** Returns the lowest nonce that is free on the chain and among stored transactions. */
function nextNonce(now: Surroundings, key: number, nonce = 0): number {
  const isStored = now.relay?.transactions.some(
    (one) => one.key === key && one.nonce === nonce && one.stored !== "never",
  );
  return isStored || isUsed(now, { key, nonce }) ? nextNonce(now, key, nonce + 1) : nonce;
}

export function isUsed({ relay }: Surroundings, { key, nonce }: Pick<Transaction, "key" | "nonce">): boolean {
  if (relay === null) return false;
  const isIt = (one: Pick<Transaction, "key" | "nonce">) => one.key === key && one.nonce === nonce;
  return relay.transactions.some((one) => isIt(one) && one.block > 0) || isTakenElsewhere(relay, { key, nonce });
}

const isTakenElsewhere = ({ elsewhere }: Relay, { key, nonce }: Pick<Transaction, "key" | "nonce">): boolean =>
  key === 0 && elsewhere?.nonce === nonce;

/** Returns the promise that breaks when an authorization enters a transaction, or null. */
function brokenByForming(now: Surroundings, world: World, calls: readonly number[]): string | null {
  const broken = calls.map((index) => {
    const one = authorizationOf(now, index);
    // A used nonce cannot be used again, so that call has no effect.
    if (one.onChain !== "unused" || !canSettle(now, one, world)) return null;
    if (one.failed === "mined") return "9: submitted again after it was mined without settling";
    if (one.told) return "1: submitted after its payer got a 402";
    const carried = now.relay?.transactions.some((other) => other.calls.includes(index) && !isOver(now, other));
    return carried ? "9: two transactions carry one authorization" : null;
  });
  return broken.find((promise) => promise !== null) ?? null;
}

/** Returns whether its nonce was finally taken by another transaction. */
const isOver = ({ relay }: Surroundings, { key, nonce }: Transaction): boolean =>
  relay !== null &&
  (relay.transactions.some((one) => one.key === key && one.nonce === nonce && one.final) ||
    (isTakenElsewhere(relay, { key, nonce }) && relay.elsewhere?.final === true));

/** Returns the moves that any process may make for stored transactions. */
export function tending({ world, off }: Bounded, now: Surroundings): Relayed[] {
  const transactions = now.relay?.transactions ?? [];
  return transactions.flatMap((one, at) => {
    const become = (label: string, change: Partial<Transaction>): Relayed => ({
      label: `transaction ${at} ${label}`,
      after: withRelay(now, () => ({ transactions: transactions.with(at, { ...one, ...change }) })),
      broken: null,
    });
    return tended(world, off, { now, one }).map(([label, change]) => become(label, change));
  });
}

type Change = readonly [label: string, change: Partial<Transaction>];

function tended(
  world: World,
  off: Off | null,
  { now, one }: { readonly now: Surroundings; readonly one: Transaction },
): Change[] {
  if (one.stored === "mined")
    return one.block === one.storedBlock
      ? []
      : [["is looked up again after a reorganization", { stored: "sent", storedBlock: 0, failed: [] }]];
  if (one.stored !== "sent") return [];
  const changes: Change[] = [];
  if (!one.broadcast && off !== "stored-is-broadcast")
    changes.push(["is broadcast by another process", { broadcast: true }]);
  if (world.relay?.replaced && !one.replaced) changes.push(["is replaced at higher fees", { replaced: true }]);
  const isUnknown = off === "any-hash-is-looked-for" && one.mined === "at its old fees";
  if (one.block > 0 && !isUnknown) changes.push(["is found mined", found(one, off)]);
  if (isLost(now, one, off) || (isUnknown && one.final))
    changes.push(["counts as lost and frees its members", { stored: "lost", members: [] }]);
  return changes;
}

const found = (one: Transaction, off: Off | null): Partial<Transaction> => ({
  stored: "mined",
  storedBlock: one.block,
  failed: one.members.filter((index) => one.wrong.includes(index)),
  members: off === "freed-when-lost" ? [] : one.members,
});

const isLost = ({ relay }: Surroundings, one: Transaction, off: Off | null): boolean =>
  relay !== null &&
  ((isTakenElsewhere(relay, one) && (relay.elsewhere?.final === true || off === "lost-at-a-final-block")) ||
    (off === "lost-is-looked-for-twice" && one.final));

/** Returns whether a transaction with it was ever formed. */
export const isCarried = ({ relay }: Surroundings, index: number): boolean =>
  relay?.transactions.some(({ calls }) => calls.includes(index)) ?? false;

/** Returns the transaction in which an authorization failed according to the ledger, or null. */
export const failedIn = ({ relay }: Surroundings, index: number): Transaction | null =>
  relay?.transactions.find(({ stored, failed }) => stored === "mined" && failed.includes(index)) ?? null;
