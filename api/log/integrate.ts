import { formatCheckpoint } from "../../packages/verifier/src/tlog/checkpoint.ts";
import { growTiles } from "../../packages/verifier/src/tlog/grow.ts";
import { leafHash, sameBytes } from "../../packages/verifier/src/tlog/hash.ts";
import { type NoteSigner, signNote } from "../../packages/verifier/src/tlog/note.ts";
import { type Announced, type EntryContent, entryBytes, type Waiting } from "./entry.ts";
import type { KnownHead } from "./served-checkpoint.ts";
import type { LogStore } from "./store.ts";
import { createForkCheck, type TrustParts, unfit } from "./trust.ts";
import type { LogWriter, NewEntry, Queued, TreeEnd, WritingTurn } from "./write-store.ts";

export interface LogState {
  /** `checking`: nothing is signed until it is known that nothing is lost. `refused`: nothing is signed; see the problem. */
  readonly state: "starting" | "checking" | "integrating" | "refused";
  /** What is wrong and how to go on; null while nothing is. */
  readonly problem: string | null;
}

export interface LogParts extends TrustParts {
  readonly origin: string;
  readonly vkey: string;
  readonly signer: NoteSigner;
  readonly store: LogStore;
  readonly writer: LogWriter;
  /** The signed document of a record. */
  readonly documentOf: (waiting: Waiting) => Promise<EntryContent>;
  /** What the service publishes by being started with it; queued once. */
  readonly announced: readonly Announced[];
  readonly now: () => Date;
  /** Why the log must not go on, as a witness has said while it ran; null if none has. */
  readonly danger: (generation: number) => Promise<string | null>;
  readonly log: { info(facts: object, message: string): void; error(facts: object, message: string): void };
}

/** So many entries are read and written with one statement. */
const CHUNK = 50;
/** A process has its other work to do: so many of them are made and signed before it does. */
const AT_ONCE = 25;
/** One checkpoint a second signs as many, so a queue gets shorter at this rate. */
const MOST = 4_000;
const CHECKPOINT_EVERY_SECONDS = 1;
const CHECK_AGAIN_MS = 10_000;

const THIS_PROCESS = "this process";

/** What a turn has written. */
interface Written {
  readonly added: number;
  readonly head: KnownHead;
}

/**
 * Puts what waits into the log. Any number of processes do so; one at a time has the turn. What a turn writes is one
 * transaction: entries, tiles, checkpoint, and the rows that leave the queue.
 */
export function createLog(parts: LogParts) {
  const { generation, origin, vkey, store, writer, elapsedMs, log } = parts;
  const forkCheck = createForkCheck(parts);
  const unmade = new Set<string>();
  /** For which server of the database the log was checked; null until it is. */
  let trusted: string | null = null;
  /** That another process has checked it does not count now. */
  let isDoubted = false;
  let head: KnownHead | null = null;
  let state: LogState = { state: "starting", problem: null };
  let isOver = false;
  let hasBegun = false;
  let checkAt = Number.NEGATIVE_INFINITY;

  const say = (next: LogState): void => {
    if (next.problem !== state.problem && next.problem !== null)
      log.error({ problem: next.problem }, `the transparency log does not sign: ${next.state}`);
    if (next.state === "integrating" && state.problem !== null) log.info({}, "the transparency log goes on");
    state = next;
  };
  const refuse = (problem: string): false => {
    say({ state: "refused", problem });
    return false;
  };

  /** Once in a process: which log this is. What is wrong here is wrong until the next start. */
  async function begin(): Promise<boolean> {
    const known = await store.generations();
    const problem = unfit({ generation, origin, vkey }, known);
    isOver = problem !== null;
    if (problem !== null) return refuse(problem);
    const found = await writer.begin({ generation, origin, vkey });
    if (found.generation !== generation || found.origin !== origin || found.vkey !== vkey) return false;
    await writer.announce(parts.announced);
    await writer.queueMissed();
    hasBegun = true;
    return true;
  }

  async function isTrusted(): Promise<boolean> {
    if (trusted !== null) return true;
    if (elapsedMs() < checkAt) return false;
    checkAt = elapsedMs() + CHECK_AGAIN_MS;
    if (state.problem === null) say({ state: "checking", problem: null });
    const server = await writer.server();
    const finding = await forkCheck.check(head === null ? [] : [head]);
    if (finding.type === "fork") return refuse(finding.problem);
    const { own, silent } = finding;
    if (finding.type === "wait" && (isDoubted || !(await writer.isVouchedFor(generation, server))))
      return waitFor(silent);
    if (silent.length > 0) log.error({ silent }, "the log goes on without knowing what these have seen of it");
    if (finding.type === "trusted") await writer.vouch(generation, server);
    trusted = server;
    isDoubted = false;
    if (own.at !== null) head = { ...own, source: THIS_PROCESS };
    checkAt = Number.NEGATIVE_INFINITY;
    return true;
  }

  function waitFor(silent: readonly string[]): false {
    const problem = `${silent.join(" and ")} cannot be asked what is known of the log`;
    say({ state: "checking", problem });
    return false;
  }

  const isBeginning = async ({ size, root }: KnownHead, end: TreeEnd): Promise<boolean> =>
    size <= end.size &&
    sameBytes(root, size === end.size && end.root !== null ? end.root : await forkCheck.rootAt(size));

  /** Whether the tree is the one that was checked, or continues it. */
  async function continues(end: TreeEnd): Promise<boolean> {
    const isThere = head === null || (await isBeginning(head, end));
    if (end.server !== trusted || !isThere) {
      trusted = null;
      isDoubted ||= !isThere;
      return false;
    }
    if (end.root !== null && !sameBytes(growTiles({ ...end, leaves: [] }).root, end.root))
      throw new Error(`the tiles of the log make another root than its checkpoint of ${end.size} entries`);
    if (end.root !== null) head = { size: end.size, root: end.root, source: THIS_PROCESS, at: end.at };
    return true;
  }

  /** It waits for a program that can make it, and keeps nothing else from the log. */
  function leave(row: Queued, error: unknown): null {
    unmade.add(row.seq);
    log.error({ err: error, type: row.type, ref: row.ref }, "a record could not be put into the log");
    return null;
  }

  async function contentOf(row: Queued): Promise<EntryContent | null> {
    if (row.isLogged) return null;
    try {
      if (row.recorded === null) throw new Error(`there is no ${row.type} ${row.ref}`);
      return await parts.documentOf({ ...row, recorded: row.recorded });
    } catch (error) {
      return leave(row, error);
    }
  }

  function placed(row: Queued, content: EntryContent | null, index: number): NewEntry | null {
    if (content === null) return null;
    try {
      return { type: row.type, ref: row.ref, index, entry: entryBytes(content, index) };
    } catch (error) {
      return leave(row, error);
    }
  }

  /** The entries of these rows from an index on, and the rows that are done with. */
  async function make(rows: readonly Queued[], from: number) {
    const entries: NewEntry[] = [];
    const done: string[] = [];
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      const some = rows.slice(at, at + AT_ONCE);
      const contents = await Promise.all(some.map(contentOf));
      for (const [place, row] of some.entries()) {
        const entry = placed(row, contents[place] ?? null, from + entries.length);
        if (entry !== null) entries.push(entry);
        if (entry !== null || row.isLogged) done.push(row.seq);
      }
    }
    return { entries, done };
  }

  async function appendAll(turn: WritingTurn): Promise<Uint8Array[]> {
    const leaves: Uint8Array[] = [];
    const { size } = turn.end;
    for (let after = "0"; leaves.length < MOST; ) {
      const rows = await turn.waiting(after, CHUNK, [...unmade]);
      const { entries, done } = await make(rows, size + leaves.length);
      if (done.length > 0) await turn.append(entries, done);
      leaves.push(...entries.map(({ entry }) => leafHash(entry)));
      after = rows.at(-1)?.seq ?? after;
      if (rows.length < CHUNK) break;
    }
    return leaves;
  }

  async function write(turn: WritingTurn): Promise<Written | null> {
    const { end } = turn;
    if (end.hasEnded) {
      isOver = true;
      refuse(`a later log has begun: set LOG_GENERATION to its number, and restart this process.`);
      return null;
    }
    // A negative age: the database's clock was set back, and nobody waits until it has caught up.
    const isYoung = end.age >= 0 && end.age < CHECKPOINT_EVERY_SECONDS;
    if (!(await continues(end)) || isYoung) return null;
    const leaves = await appendAll(turn);
    if (leaves.length === 0) return null;
    const growth = growTiles({ size: end.size, edge: end.edge, leaves });
    const { size, root } = growth;
    await turn.publish(growth, await signNote(formatCheckpoint({ origin, size, root }), parts.signer));
    return { added: leaves.length, head: { size, root, source: THIS_PROCESS, at: parts.now() } };
  }

  return {
    /** Returns how many entries it added. */
    async integrate(): Promise<number> {
      if (isOver || (!hasBegun && !(await begin()))) return 0;
      try {
        if (!(await isTrusted()) || !(await writer.hasWaiting([...unmade]))) return 0;
        const danger = await parts.danger(generation);
        if (danger !== null) return Number(refuse(danger));
        say({ state: "integrating", problem: null });
        const written = await writer.inTurn(generation, write);
        // It is committed now; before, it might never have been.
        if (written !== null) head = written.head;
        return written?.added ?? 0;
      } catch (error) {
        // The database may be another one when it is back.
        trusted = null;
        throw error;
      }
    },
    state: () => state,
    /** Before the next signature, those who have seen the log are asked again. */
    distrust(): void {
      trusted = null;
      isDoubted = true;
      checkAt = Number.NEGATIVE_INFINITY;
    },
  };
}
