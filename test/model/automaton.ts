import { finalise, relayed } from "./beside.ts";
import { chainMoves, leaseMoves } from "./chain.ts";
import { batchInShort, deliveredBy, inShort, rowInShort } from "./coverage.ts";
import { act, arrive, crash, type Explored, heartbeat, type Outcome, resolve } from "./shell.ts";
import { beginning, type Process, type Surroundings } from "./world.ts";

/** A state in numbers: the surroundings, then the API processes, then the resolver. An idle process is 0. */
export type State = readonly number[];

export interface Move {
  readonly label: string;
  /** The position of the process that moves; 0 when it is none. */
  readonly by: number;
  readonly to: State;
  readonly outcome: NumberedOutcome | null;
}

interface NumberedOutcome extends Pick<Outcome, "label" | "taken" | "broken"> {
  /** The payments whose result its payer gets, as bits. */
  readonly delivered: number;
  readonly after: number;
  readonly process: number;
}

export interface Automaton {
  readonly start: State;
  moves(state: State): Move[];
  readonly surroundings: readonly Surroundings[];
  /** Every answer that was given, and every state of a row that was met. */
  readonly covered: ReadonlySet<string>;
}

const IDLE = 0;
export const MOST_PROCESSES = 4096;

/** Every move of a world. */
export function createAutomaton(explored: Explored): Automaton {
  const { world } = explored;
  const outcomes = createOutcomes(explored);
  const start = [outcomes.beginning, ...Array(world.apiProcesses ?? 2).fill(IDLE), IDLE];
  const resolver = start.length - 1;

  function apply(state: State, by: number, outcome: NumberedOutcome): Move {
    const to = state.slice();
    const { taken } = outcome;
    if (taken !== null) for (let i = 1; i < to.length; i++) to[i] = outcomes.lose(to[i] ?? IDLE, taken);
    to[0] = outcome.after;
    if (by > 0) to[by] = outcome.process;
    return { label: outcome.label, by, to, outcome };
  }

  function moves(state: State): Move[] {
    const [now = 0] = state;
    const found: Move[] = [];
    const add = (by: number, possible: readonly NumberedOutcome[]) => {
      for (const outcome of possible) found.push(apply(state, by, outcome));
    };
    const idle = state.indexOf(IDLE, 1);
    if (idle > 0 && idle < resolver) add(idle, outcomes.arrivals(now));
    if (state[resolver] === IDLE && world.resolver === undefined) add(resolver, outcomes.dues(now));
    add(0, outcomes.besides(now));
    for (let by = 1; by <= resolver; by++) {
      const process = state[by] ?? IDLE;
      // Two processes in the same run would do the same.
      if (process === IDLE || (by > 1 && by < resolver && process === state[by - 1])) continue;
      add(by, outcomes.acts(now * MOST_PROCESSES + process));
      if (!world.calm) {
        const to = state.with(by, IDLE);
        to[0] = outcomes.crashed(now * MOST_PROCESSES + process);
        found.push({ label: "crashes", by, to, outcome: null });
      }
    }
    for (const { label, after } of outcomes.happenings(now))
      found.push({ label, by: 0, to: state.with(0, after), outcome: null });
    return found;
  }
  return { start, moves, surroundings: outcomes.surroundings, covered: outcomes.covered };
}

/**
 * All that may come of anything, in numbers. What may come of a command depends on its own run and the surroundings alone, so
 * it is worked out once for each pair of them, by the real machine, and looked up ever after.
 */
function createOutcomes(explored: Explored) {
  const { world } = explored;
  const surroundings = numbering<Surroundings>();
  const processes = numbering<Process | null>(MOST_PROCESSES);
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
  const beside = (now: Surroundings) => [...chainMoves(now, world), ...leaseMoves(now, world)];
  const happenings = remember((now) =>
    beside(at(now)).map(({ label, after }) => ({ label, after: surroundings.numberOf(after) })),
  );
  const arrivals = remember((now) => world.sent.flatMap((sent) => arrive(explored, at(now), sent).map(numbered)));
  const dues = remember((now) => resolve(explored, at(now)).map(numbered));
  const besides = remember((now) => [...finalise(explored, at(now)), ...relayed(explored, at(now))].map(numbered));
  const paired = (pair: number) =>
    [at(Math.floor(pair / MOST_PROCESSES)), processes.values[pair % MOST_PROCESSES]] as const;
  const acts = remember((pair) => {
    const [now, process] = paired(pair);
    return process ? [...act(explored, now, process), ...heartbeat(now, process)].map(numbered) : [];
  });
  const crashed = remember((pair) => {
    const [now, process] = paired(pair);
    return process ? surroundings.numberOf(crash(now, process)) : 0;
  });
  const bereft = remember((number) => {
    const process = processes.values[number];
    return process?.holds ? processes.numberOf({ ...process, holds: false }) : number;
  });
  /** The run after its row's token went to another one. */
  const lose = (number: number, slot: number) => (processes.values[number]?.slot === slot ? bereft(number) : number);
  const first = surroundings.numberOf(beginning(world));
  return {
    beginning: first,
    happenings,
    arrivals,
    dues,
    besides,
    acts,
    crashed,
    lose,
    surroundings: surroundings.values,
    covered,
  };
}

function remember<T>(workOut: (number: number) => T): (number: number) => T {
  const known = new Map<number, T>();
  return (number) => {
    const before = known.get(number);
    if (before !== undefined) return before;
    const result = workOut(number);
    known.set(number, result);
    return result;
  };
}

/** Numbers values by their text. */
function numbering<T>(most = Number.POSITIVE_INFINITY) {
  const numbers = new Map<string, number>();
  const values: T[] = [];
  const numberOf = (value: T): number => {
    const text = JSON.stringify(value);
    const known = numbers.get(text);
    if (known !== undefined) return known;
    if (values.length === most) throw new Error(`there are more than ${most} values to number`);
    numbers.set(text, values.length);
    return values.push(value) - 1;
  };
  return { values, numberOf };
}
