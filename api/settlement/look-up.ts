import type { Network } from "../kernel/networks.ts";
import type { Hex } from "../kernel/wallet.ts";
import type {
  AuthorizationReader,
  Block,
  HashedBlock,
  KnownTransaction,
  NonceEnd,
  NonceName,
  NonceReading,
} from "./authorization-reader.ts";
import { decide, type Missing, type Seen, type Status } from "./decide.ts";
import { createMemory, type Memory } from "./memory.ts";
import type { Question } from "./question.ts";

/**
 * A younger reading cannot miss anything final: on Base, a block is final after 13 minutes at the earliest (docs.base.org,
 * "Transaction finality").
 */
const YOUNG_SECONDS = 600n;
/** Nodes behind one URL take turns: of so many readings, one is of a node that keeps up. */
const READINGS = 3;

export interface LookUpParts {
  readonly readers: Readonly<Record<Network, AuthorizationReader>>;
  readonly known: KnownTransaction;
  readonly now: () => Date;
}

/** Lets a search of the chain through; false if the hour's are spent. */
export type MaySearch = () => Promise<boolean>;

/** What has become of an authorization. Rejects if the chain cannot be read. */
export type LookUp = (question: Question, maySearch: MaySearch) => Promise<Status>;

export function createLookUp(parts: LookUpParts): LookUp {
  const memory = createMemory(() => parts.now().getTime());
  return async (question, maySearch) => {
    const { network, from, nonce } = question;
    const looking = { ...parts, memory, reader: parts.readers[network], question, maySearch, name: { from, nonce } };
    return decide(question, await see(looking));
  };
}

interface Looking extends LookUpParts {
  readonly memory: Memory;
  readonly reader: AuthorizationReader;
  readonly question: Question;
  readonly name: NonceName;
  readonly maySearch: MaySearch;
}

async function see(looking: Looking): Promise<Seen> {
  const { memory, question } = looking;
  const before = memory.ended(question);
  if (before?.isFinal) return { nonce: "used", asOf: before.end.block, ...before };
  const over = memory.unusedAt(question);
  if (over !== null && question.validBefore !== null && over.time >= question.validBefore)
    return { nonce: "unused", reading: { used: false, at: over }, unusedAt: over };
  const reading = await readingOf(looking);
  // A node that has not come to the block of the end cannot deny it.
  if (!reading.used && (before === null || reading.at.number >= before.end.block.number)) {
    memory.forget(question);
    return { nonce: "unused", reading, unusedAt: await unusedAt(looking, reading) };
  }
  const found = before === null ? await find(looking, reading.at) : before.end;
  if (typeof found === "string") return { nonce: "used", asOf: reading.at, end: null, search: found };
  return settled(looking, { asOf: reading.at, end: found });
}

/** A reading that cannot miss anything final. Of nodes that all stand still, the newest. */
async function readingOf({ reader, name, now }: Looking): Promise<NonceReading> {
  let newest = await reader.state(name);
  const oldest = BigInt(Math.floor(now().getTime() / 1000)) - YOUNG_SECONDS;
  for (let more = 1; more < READINGS && !newest.used && newest.at.time < oldest; more++) {
    const again = await reader.stateAgain(name);
    if (again.used || again.at.number > newest.at.number) newest = again;
  }
  return newest;
}

/** The negative proof, where `validBefore` is known and over: a final block, and two readings after it. */
async function unusedAt(
  { reader, name, question, memory }: Looking,
  reading: NonceReading,
): Promise<HashedBlock | null> {
  const { validBefore } = question;
  if (validBefore === null || reading.at.time < validBefore) return null;
  const final = await reader.final();
  if (final === null || final.time < validBefore || reading.at.number < final.number) return null;
  const again = await reader.stateAgain(name);
  if (again.used || again.at.number < final.number) return null;
  memory.putUnused(question, final);
  return final;
}

async function find(looking: Looking, seen: Block): Promise<NonceEnd | Missing> {
  const { reader, name, question, known, maySearch } = looking;
  const ours = await known(question.network, name);
  const end = ours === null ? null : await reader.endIn(ours, name);
  if (end !== null) return end;
  if (!(await maySearch())) return "later";
  for (const hint of hintsOf(looking)) {
    const hinted = await reader.endIn(hint, name);
    if (hinted !== null) return hinted;
  }
  const { validAfter: after, validBefore: before } = question;
  const searched = await reader.search(name, { after, before, seen });
  return typeof searched === "string" ? searched : searched.found;
}

/** What we saw a while ago, and what the caller was told. */
const hintsOf = ({ memory, question }: Looking): readonly Hex[] =>
  [memory.lastSeen(question), question.transaction].filter((one) => one !== null);

async function settled(
  { reader, memory, question }: Looking,
  { asOf, end }: { readonly asOf: Block; readonly end: NonceEnd },
): Promise<Seen> {
  const final = await reader.final();
  const standing = final === null || final.number < end.block.number ? "pending" : await reader.standing(end.block);
  if (standing === "unknown") {
    memory.forget(question);
    return { nonce: "used", asOf, end: null, search: "unfinished" };
  }
  memory.put(question, { end, isFinal: standing === "final" });
  return { nonce: "used", asOf, end, isFinal: standing === "final" };
}
