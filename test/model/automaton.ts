import type { Answer } from "../../api/payments/step-types.ts";
import type { Transaction } from "./batch.ts";
import { chainMoves, leaseMoves } from "./chain.ts";
import { finalize, relayed } from "./outside-runs.ts";
import type { Answered } from "./promises.ts";
import { act, arrive, crash, type Explored, heartbeat, type Outcome, resolve } from "./shell.ts";
import { beginning, type Happening, type JournalRow, type Process, type Surroundings } from "./world.ts";

/** A state as numbers: the surroundings, the API processes, and the resolver. An idle process is 0. */
export type State = readonly number[];

/** A move of a state. */
export interface Move {
  readonly label: string;
  /** The position of the process that moves, or 0 for another move. */
  readonly by: number;
  /** Valid until the next move. A caller that needs it longer must copy it. A caller may change it. */
  readonly to: number[];
  readonly outcome: NumberedOutcome;
}

interface NumberedOutcome extends Pick<Outcome, "label" | "taken" | "broken"> {
  /** The payments whose result their payer gets, as bits. */
  readonly delivered: number;
  readonly after: number;
  readonly process: number;
}

export interface Automaton {
  readonly start: State;
  /** Returns the first move of a state that `isWanted` accepts, or null. */
  find(state: State, isWanted: (move: Move) => boolean): Move | null;
  readonly surroundings: readonly Surroundings[];
  /** Every answer and row state that was reached. */
  readonly covered: ReadonlySet<string>;
}

const IDLE = 0;
/** Creates the automaton of a world. */
export function createAutomaton(explored: Explored): Automaton {
  const { world } = explored;
  const outcomes = createOutcomes(explored);
  const start = [outcomes.beginning, ...Array(world.apiProcesses ?? 2).fill(IDLE), IDLE];
  const resolver = start.length - 1;

  /** Reused for every move. */
  const to = [...start];
  function apply(state: State, by: number, outcome: NumberedOutcome): Move {
    const { label, taken, after, process } = outcome;
    for (let i = 1; i < to.length; i++)
      to[i] = taken === null ? (state[i] ?? IDLE) : outcomes.lose(state[i] ?? IDLE, taken);
    to[0] = after;
    if (by > 0) to[by] = process;
    return { label, by, to, outcome };
  }

  function find(state: State, isWanted: (move: Move) => boolean): Move | null {
    const [now = 0] = state;
    const among = (by: number, possible: readonly NumberedOutcome[]): Move | null => {
      for (const outcome of possible) {
        const move = apply(state, by, outcome);
        if (isWanted(move)) return move;
      }
      return null;
    };
    const ofProcesses = (): Move | null => {
      for (let by = 1; by <= resolver; by++) {
        const process = state[by] ?? IDLE;
        // Two processes in the same run have the same moves.
        if (process === IDLE || (by > 1 && by < resolver && process === state[by - 1])) continue;
        const move = among(by, outcomes.acts(now)(process));
        if (move !== null) return move;
      }
      return null;
    };
    const idle = state.indexOf(IDLE, 1);
    return (
      (idle > 0 && idle < resolver ? among(idle, outcomes.arrivals(now)) : null) ??
      (state[resolver] === IDLE && world.resolver === undefined ? among(resolver, outcomes.dues(now)) : null) ??
      among(0, outcomes.background(now)) ??
      ofProcesses() ??
      among(0, outcomes.happenings(now))
    );
  }
  return { start, find, surroundings: outcomes.surroundings, covered: outcomes.covered };
}

/**
 * All outcomes, as numbers. The outcomes of a command depend only on its run and the surroundings, so the real machine
 * computes them once for each pair, and later moves look them up.
 */
function createOutcomes(explored: Explored) {
  const { world } = explored;
  const surroundings = numbering<Surroundings>();
  const processes = numbering<Process | null>();
  processes.numberOf(null);
  const covered = new Set<string>();
  const at = (now: number) => surroundings.values[now] ?? beginning(world);
  const numbered = ({ label, after, process, taken, answered, broken }: Outcome): NumberedOutcome => {
    if (answered !== null) covered.add(inShort(answered));
    for (const row of after.rows) if (row !== null) covered.add(rowInShort(row));
    for (const one of after.relay?.transactions ?? []) covered.add(batchInShort(one));
    const delivered = answered === null ? 0 : deliveredBy(answered);
    return {
      label,
      after: surroundings.numberOf(after),
      process: processes.numberOf(process),
      taken,
      broken,
      delivered,
    };
  };
  /** An event outside of runs. */
  const happened = ({ label, after }: Happening): NumberedOutcome => ({
    label,
    after: surroundings.numberOf(after),
    process: IDLE,
    taken: null,
    broken: null,
    delivered: 0,
  });
  const moves = (now: Surroundings) => [...chainMoves(now, world), ...leaseMoves(now, world)];
  const happenings = remember((now) => moves(at(now)).map(happened));
  const arrivals = remember((now) => world.sent.flatMap((sent) => arrive(explored, at(now), sent).map(numbered)));
  const dues = remember((now) => resolve(explored, at(now)).map(numbered));
  const background = remember((now) => [...finalize(explored, at(now)), ...relayed(explored, at(now))].map(numbered));
  const actsOf = (now: Surroundings, process: Process): NumberedOutcome[] => [
    ...[...act(explored, now, process), ...heartbeat(now, process)].map(numbered),
    ...(world.calm ? [] : [happened({ label: "crashes", after: crash(now, process) })]),
  ];
  const acts = remember((now) =>
    remember((number) => {
      const process = processes.values[number];
      return process ? actsOf(at(now), process) : [];
    }),
  );
  const bereft = remember((number) => {
    const process = processes.values[number];
    return process?.holds ? processes.numberOf({ ...process, holds: false }) : number;
  });
  /** Returns the run after another run took its row's token. */
  const lose = (number: number, slot: number) => (processes.values[number]?.slot === slot ? bereft(number) : number);
  const first = surroundings.numberOf(beginning(world));
  return {
    beginning: first,
    happenings,
    arrivals,
    dues,
    background,
    acts,
    lose,
    surroundings: surroundings.values,
    covered,
  };
}

/** Caches the result for each number. There are few numbers. */
function remember<T>(workOut: (number: number) => T): (number: number) => T {
  const known: (T | undefined)[] = [];
  return (number) => {
    const before = known[number];
    if (before !== undefined) return before;
    while (known.length < number) known.push(undefined);
    const result = workOut(number);
    known[number] = result;
    return result;
  };
}

/** The value of a field. */
type Part = string | number | boolean | object | null;

/**
 * Numbers values by their parts. Most values differ from a known one in a single part, so only new parts are
 * serialized.
 */
function numbering<T extends object | null>() {
  const numbers = new Map<T | string, number>();
  const values: T[] = [];
  const parts = new Map<object | string, number>();
  const partNumber = (part: object): number => {
    const same = parts.get(part);
    if (same !== undefined) return same;
    const text = JSON.stringify(part);
    const known = parts.get(text) ?? parts.size;
    parts.set(text, known);
    return known;
  };
  const textOf = (part: Part): string => {
    if (part === null || typeof part !== "object") return `${part}`;
    return Array.isArray(part) ? `[${part.map(textOf)}]` : `#${partNumber(part)}`;
  };
  const keep = (part: Part): void => {
    if (part === null || typeof part !== "object") return;
    if (Array.isArray(part)) part.forEach(keep);
    else parts.set(part, partNumber(part));
  };
  const numberOf = (value: T): number => {
    const same = numbers.get(value);
    if (same !== undefined) return same;
    const fields: Part[] = Object.values(value ?? {});
    const text = fields.map(textOf).join("|");
    const known = numbers.get(text);
    if (known !== undefined) return known;
    fields.forEach(keep);
    numbers.set(text, values.length).set(value, values.length);
    return values.push(value) - 1;
  };
  return { values, numberOf };
}

type About = Pick<Answered, "answer" | "sent" | "known">;

/**
 * Returns an answer in short form, with its sender and whether it is about a payment that the header does not carry.
 */
function inShort({ answer, sent, known }: About): string {
  const other = known !== null && known.authorization !== sent.authorization ? ", under the same identifier" : "";
  return `${sent.by}: ${answerInShort(answer)}${other}`;
}

function answerInShort(answer: Answer): string {
  switch (answer.type) {
    case "wait":
      return `wait, ${answer.because}${answer.charged ? ", charged" : ""}`;
    case "result":
      return answer.replay ? "replay" : "result";
    default:
      return answer.type;
  }
}

const rowInShort = ({ state, reason, final }: JournalRow): string =>
  ["row", state, reason, final && "final"].filter(Boolean).join(" ");

const batchInShort = ({ calls, stored, failed }: Transaction): string =>
  `batch of ${calls.length}, ${stored}${failed.length > 0 ? `, ${failed.length} failed` : ""}`;

/** Returns the payment whose result its payer gets, as a bit. */
const deliveredBy = ({ answer, sent, known }: About): number =>
  answer.type === "result" && sent.by === "payer" ? 1 << (known?.authorization ?? sent.authorization) : 0;
