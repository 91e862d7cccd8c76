import { formatCheckpoint } from "../../packages/verifier/src/tlog/checkpoint.ts";
import { growTiles } from "../../packages/verifier/src/tlog/grow.ts";
import { leafHash, sameBytes } from "../../packages/verifier/src/tlog/hash.ts";
import { type NoteSigner, signNote } from "../../packages/verifier/src/tlog/note.ts";
import { type Announced, type EntryContent, entryBytes, type Waiting } from "./entry.ts";
import type { LogStore } from "./store.ts";
import { createForkCheck, type KnownHead, type TrustParts, unfit } from "./trust.ts";
import type { LogWriter, NewEntry, Queued, TreeEnd, WritingTurn } from "./write-store.ts";

export interface LogState {
  /** `checking`: no signing until the log is known to be complete. `refused`: no signing because of `problem`. */
  readonly state: "starting" | "checking" | "integrating" | "refused";
  /** The fault and its remedy, or null. */
  readonly problem: string | null;
}

export interface LogParts extends TrustParts {
  readonly origin: string;
  readonly vkey: string;
  readonly signer: NoteSigner;
  readonly store: LogStore;
  readonly writer: LogWriter;
  /** Returns the signed document of a record. */
  readonly documentOf: (waiting: Waiting) => Promise<EntryContent>;
  /** The facts that the service publishes when it starts. Each is queued once. */
  readonly announced: readonly Announced[];
  readonly now: () => Date;
  /** Returns the reason that a witness gave for stopping the log, or null. */
  readonly danger: (generation: number) => Promise<string | null>;
  readonly log: { info(facts: object, message: string): void; error(facts: object, message: string): void };
}

/** Entries read and written per statement. */
const CHUNK = 50;
/** Entries made and signed before the process gets to do other work. */
const AT_ONCE = 25;
/** Entries per checkpoint. With one checkpoint per second, a queue drains at this rate. */
const MOST = 4_000;
const CHECKPOINT_EVERY_SECONDS = 1;
const CHECK_AGAIN_MS = 10_000;

const THIS_PROCESS = "this process";

interface Written {
  readonly added: number;
  readonly head: KnownHead;
}

/**
 * Adds queued records to the log. Every process may run it, and one at a time gets the turn. A turn is one transaction:
 * entries, tiles, the checkpoint, and the rows removed from the queue.
 */
export function createLog(parts: LogParts) {
  const { generation, origin, vkey, store, writer, elapsedMs, log } = parts;
  const forkCheck = createForkCheck(parts);
  const unmade = new Set<string>();
  /** The database server on which the log was checked, or null. */
  let trusted: string | null = null;
  /** If true, a check by another process does not count. */
  let isDoubted = false;
  let head: KnownHead | null = null;
  let state: LogState = { state: "starting", problem: null };
  let isOver = false;
  let hasBegun = false;
  let checkAt = Number.NEGATIVE_INFINITY;

  const report = (next: LogState): void => {
    if (next.problem !== state.problem && next.problem !== null)
      log.error({ problem: next.problem }, `the transparency log has stopped signing: ${next.state}`);
    if (next.state === "integrating" && state.problem !== null) log.info({}, "the transparency log signs again");
    state = next;
  };
  const refuse = (problem: string): false => {
    report({ state: "refused", problem });
    return false;
  };

  /** Runs once per process. A fault found here lasts until the next start. */
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
    if (state.problem === null) report({ state: "checking", problem: null });
    const server = await writer.server();
    const finding = await forkCheck.check(head === null ? [] : [head]);
    if (finding.type === "fork") return refuse(finding.problem);
    const { own, silent } = finding;
    if (finding.type === "wait" && (isDoubted || !(await writer.isVouchedFor(generation, server))))
      return waitFor(silent);
    if (silent.length > 0)
      log.error({ silent }, "the log continues although these sources did not report the size they know");
    if (finding.type === "trusted") await writer.vouch(generation, server);
    trusted = server;
    isDoubted = false;
    if (own.at !== null) head = { ...own, source: THIS_PROCESS };
    checkAt = Number.NEGATIVE_INFINITY;
    return true;
  }

  function waitFor(silent: readonly string[]): false {
    const problem = `${silent.join(" and ")} did not report the size of the log that they know`;
    report({ state: "checking", problem });
    return false;
  }

  const isBeginning = async ({ size, root }: KnownHead, end: TreeEnd): Promise<boolean> =>
    size <= end.size &&
    sameBytes(root, size === end.size && end.root !== null ? end.root : await forkCheck.rootAt(size));

  /** Whether the tree is the one that was checked, or extends it. */
  async function continues(end: TreeEnd): Promise<boolean> {
    const isThere = head === null || (await isBeginning(head, end));
    if (end.server !== trusted || !isThere) {
      trusted = null;
      isDoubted ||= !isThere;
      return false;
    }
    if (end.root !== null && !sameBytes(growTiles({ ...end, leaves: [] }).root, end.root))
      throw new Error(`the root of the log's tiles differs from its checkpoint of ${end.size} entries`);
    if (end.root !== null) head = { size: end.size, root: end.root, source: THIS_PROCESS, at: end.at };
    return true;
  }

  /** Leaves a record in the queue for a release that can log it. The other records do not wait. */
  function leave(row: Queued, error: unknown): null {
    unmade.add(row.seq);
    log.error({ err: error, type: row.type, ref: row.ref }, "a record could not be added to the log");
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

  /** Returns the entries of these rows, starting at an index, and the rows that are done. */
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
      refuse("a later log has begun: set LOG_GENERATION to its number, and restart this process.");
      return null;
    }
    // A negative age means that the database's clock was set back. Do not wait for it to catch up.
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
    /** Returns the number of added entries. */
    async integrate(): Promise<number> {
      if (isOver || (!hasBegun && !(await begin()))) return 0;
      try {
        if (!(await isTrusted()) || !(await writer.hasWaiting([...unmade]))) return 0;
        const danger = await parts.danger(generation);
        if (danger !== null) return Number(refuse(danger));
        report({ state: "integrating", problem: null });
        const written = await writer.inTurn(generation, write);
        // Only now is it known to be committed.
        if (written !== null) head = written.head;
        return written?.added ?? 0;
      } catch (error) {
        // A different database may come back.
        trusted = null;
        throw error;
      }
    },
    state: () => state,
    /** Before the next signature, the witnesses and anchors are checked again. */
    distrust(): void {
      trusted = null;
      isDoubted = true;
      checkAt = Number.NEGATIVE_INFINITY;
    },
  };
}
