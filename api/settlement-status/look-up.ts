import { LRUCache } from "lru-cache";
import { AGREEING, agreementOn, type Block, firstShown, type HashedBlock, READINGS } from "../platform/chain/nodes.ts";
import type { Asker } from "../platform/http/request.ts";
import type { Network } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import { decide, type Missing, type Seen, type Status } from "./decide.ts";
import type { Question } from "./question.ts";
import type {
  AuthorizationReader,
  FinalFacts,
  KnownTransaction,
  NonceEnd,
  NonceName,
  NonceReading,
} from "./reading.ts";

/** The end of a nonce, and whether it is final. */
interface Ended {
  readonly end: NonceEnd;
  readonly isFinal: boolean;
}

type Name = Pick<Question, "network" | "from" | "nonce">;
type Windowed = Name & Pick<Question, "validBefore">;

/** The limit per kind, about 10 MB. */
const KEPT = { maxSize: 20_000, sizeCalculation: () => 1 };
/** A reorganization may move a transaction to another block, or replace it. */
const BELIEVED_MS = 60_000;

/**
 * Creates a cache of results. Final ones stay until they are evicted, the others are valid for a minute.
 * @param now milliseconds since an arbitrary moment
 */
function createMemory(now: () => number) {
  const ends = new LRUCache<string, Ended & { readonly since: number }>(KEPT);
  const unused = new LRUCache<string, HashedBlock>(KEPT);
  const isBelieved = (found: Ended & { readonly since: number }) => found.isFinal || now() - found.since <= BELIEVED_MS;
  return {
    ended(name: Name): Ended | null {
      const found = ends.get(nameKey(name));
      return found !== undefined && isBelieved(found) ? { end: found.end, isFinal: found.isFinal } : null;
    },
    /** Returns the transaction that was found last, of any age. */
    lastSeen: (name: Name): Hex | null => ends.get(nameKey(name))?.end.transaction ?? null,
    put(name: Name, ended: Ended): void {
      const before = ends.get(nameKey(name));
      // A result from the cache is not a new observation.
      const isOld = before !== undefined && isBelieved(before) && before.end === ended.end;
      ends.set(nameKey(name), { ...ended, since: isOld ? before.since : now() });
    },
    forget: (name: Name): void => void ends.delete(nameKey(name)),
    /** Returns a final block at or after `validBefore` before which the nonce was not used, or null. */
    unusedBefore: (window: Windowed): HashedBlock | null => unused.get(windowKey(window)) ?? null,
    putUnused: (window: Windowed, block: HashedBlock): void => void unused.set(windowKey(window), block),
  };
}

const nameKey = ({ network, from, nonce }: Name): string => `${network} ${from} ${nonce}`;

const windowKey = (window: Windowed): string => `${nameKey(window)} ${window.validBefore}`;

/**
 * A younger reading cannot miss a final block, because on Base a block takes at least 13 minutes to become final
 * (docs.base.org, "Transaction finality").
 */
const YOUNG_SECONDS = 600n;

export interface LookUpParts {
  readonly readers: Readonly<Record<Network, AuthorizationReader>>;
  readonly known: KnownTransaction;
  readonly facts: Readonly<Record<Network, FinalFacts>>;
  readonly now: () => Date;
  /** Milliseconds since an arbitrary moment; never runs backwards. Defaults to `now`. */
  readonly elapsedMs?: () => number;
}

/** The client and its allowance. */
export interface Asking {
  readonly asker: Asker;
  /** Spends a search of the chain. Returns false if the hourly budget is spent. */
  readonly maySearch: () => Promise<boolean>;
}

/** Returns the status of an authorization. Rejects if the chain is unreachable, or too many free requests are waiting. */
export type LookUp = (question: Question, asking: Asking) => Promise<Status>;

export function createLookUp({ readers, facts, elapsedMs, ...parts }: LookUpParts): LookUp {
  const memory = createMemory(elapsedMs ?? (() => parts.now().getTime()));
  return async (question, asking) => {
    const { network, from, nonce } = question;
    const chain = { reader: readers[network], facts: facts[network] };
    return decide(question, await see({ ...parts, ...chain, memory, question, asking, name: { from, nonce } }));
  };
}

interface Looking extends Pick<LookUpParts, "known" | "now"> {
  readonly memory: ReturnType<typeof createMemory>;
  readonly reader: AuthorizationReader;
  readonly facts: FinalFacts;
  readonly question: Question;
  readonly name: NonceName;
  readonly asking: Asking;
}

async function see(looking: Looking): Promise<Seen> {
  const { memory, question } = looking;
  const forGood = remembered(looking) ?? (await kept(looking));
  if (forGood !== null) return forGood;
  const before = memory.ended(question);
  const over = await finalAfterWindow(looking);
  const reading = await readingOf(looking);
  // A node that is behind the block of the end cannot refute it.
  if (!reading.used && (before === null || reading.at.number >= before.end.block.number))
    return { nonce: "unused", reading, unusedBefore: await unusedBefore(looking, over, reading) };
  const found = before === null ? await find(looking, reading.at) : before.end;
  if (typeof found === "string") return notFound(looking, { over, reading, search: found });
  const isFinal = await isForGood(looking, found);
  if (isFinal !== null) return { nonce: "used", asOf: reading.at, end: found, isFinal };
  // The cached block is no longer on the chain.
  return before === null ? { nonce: "used", asOf: reading.at, end: null, search: "unfinished" } : see(looking);
}

/** Returns a cached final result. The first proof is returned again, even if the nonce is used later. */
function remembered({ memory, question }: Looking): Seen | null {
  const block = memory.unusedBefore(question);
  if (block !== null) return { nonce: "unused", reading: { used: false, at: block }, unusedBefore: block };
  const ended = memory.ended(question);
  return ended?.isFinal ? { nonce: "used", asOf: ended.end.block, ...ended } : null;
}

/** Returns a final result that another process has stored. */
async function kept(looking: Looking): Promise<Seen | null> {
  const { facts, name, question, memory } = looking;
  const { end, unusedBefore: block } = await facts.get(name, question.validBefore);
  if (end !== null) memory.put(question, { end, isFinal: true });
  if (block !== null) memory.putUnused(question, block);
  return remembered(looking);
}

const secondsOf = (time: Date): bigint => BigInt(Math.floor(time.getTime() / 1000));

/** Returns a reading that cannot miss a final block, unless all nodes are stalled. */
async function readingOf({ reader, name, now, asking: { asker } }: Looking): Promise<NonceReading> {
  let reading = await reader.state(name, asker);
  const oldest = secondsOf(now()) - YOUNG_SECONDS;
  for (let more = 1; more < READINGS && !reading.used && reading.at.time < oldest; more++)
    reading = await reader.stateAgain(name, asker, more);
  return reading;
}

/** Returns a final block at or after `validBefore`, or null. */
async function finalAfterWindow({ reader, question: { validBefore }, now }: Looking): Promise<HashedBlock | null> {
  if (validBefore === null || secondsOf(now()) < validBefore) return null;
  const final = await reader.final();
  return final !== null && final.time >= validBefore ? final : null;
}

/**
 * Returns the negative proof: several readings after the final block, taken in sequence so that they come from different
 * nodes behind a load balancer. A lagging node may be on an abandoned branch, so one reading that shows the nonce used
 * refutes all others.
 */
async function unusedBefore(
  { reader, name, question, memory, facts, asking: { asker } }: Looking,
  final: HashedBlock | null,
  reading: NonceReading,
): Promise<HashedBlock | null> {
  if (question.validBefore === null || final === null) return null;
  const readings = [reading];
  while (readings.length < READINGS) readings.push(await reader.stateAgain(name, asker, readings.length));
  const after = readings.filter(({ at }) => at.number >= final.number);
  if (after.length < AGREEING || readings.some((one) => one.used)) return null;
  const block = await facts.putUnused(name, question.validBefore, final);
  memory.putUnused(question, block);
  return block;
}

interface NotFound {
  readonly over: HashedBlock | null;
  readonly reading: NonceReading;
  readonly search: Missing;
}

/** Without a log, the nonce may have been used later, because the search ends soon after `validBefore`. It was unused then. */
async function notFound(looking: Looking, { over, reading, search }: NotFound): Promise<Seen> {
  const unused = over === null || search === "later" ? null : await unusedThen(looking, over).catch(() => null);
  return unused === null
    ? { nonce: "used", asOf: reading.at, end: null, search }
    : { nonce: "unused", reading, unusedBefore: unused };
}

/**
 * Returns the negative proof from the state at an old final block. Nodes must agree on the block, and of three readings at
 * it, none may show the nonce used and two must show it unused. Returns null if too many nodes have pruned the state.
 */
async function unusedThen(
  { reader, name, question, memory, facts }: Looking,
  final: HashedBlock,
): Promise<HashedBlock | null> {
  const { validBefore } = question;
  if (validBefore === null) return null;
  const block = await firstShown((reading) => reader.blockSince(validBefore, final, reading));
  if (block === null || (await agreementOn(reader, block)) !== "agreed") return null;
  const readings: (boolean | null)[] = [];
  for (let reading = 0; reading < READINGS; reading++) {
    const used = await reader.usedBy(name, block.number, reading).catch(() => null);
    if (used === true) return null;
    readings.push(used);
  }
  if (readings.filter((used) => used === false).length < AGREEING) return null;
  const kept = await facts.putUnused(name, validBefore, block);
  memory.putUnused(question, kept);
  return kept;
}

async function find({ reader, memory, name, question, known, asking }: Looking, seen: Block) {
  const endIn = (transaction: Hex | null): Promise<NonceEnd | null> =>
    transaction === null ? Promise.resolve(null) : firstShown((reading) => reader.endIn(transaction, name, reading));
  const ours = await endIn(await known(question.network, name));
  if (ours !== null) return ours;
  if (!(await asking.maySearch())) return "later" satisfies Missing;
  // The transaction that we found earlier, then the one that the caller sent.
  const hinted = (await endIn(memory.lastSeen(question))) ?? (await endIn(question.transaction));
  if (hinted !== null) return hinted;
  const { validAfter: after, validBefore: before } = question;
  const searched = await reader.search(name, { after, before, seen });
  if (typeof searched === "string") return searched;
  return (await endIn(searched.transaction)) ?? ("unfinished" satisfies Missing);
}

/** Returns whether the end is final, or null if its block is no longer on the chain. Caches the result. */
async function isForGood({ reader, memory, question, facts, name }: Looking, end: NonceEnd): Promise<boolean | null> {
  const final = await reader.final();
  const agreement =
    final === null || final.number < end.block.number ? "contested" : await agreementOn(reader, end.block);
  if (agreement === "gone") {
    memory.forget(question);
    return null;
  }
  const isFinal = agreement === "agreed";
  if (isFinal) await facts.putEnd(name, end);
  memory.put(question, { end, isFinal });
  return isFinal;
}
