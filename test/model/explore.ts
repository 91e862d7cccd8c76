import { type Automaton, createAutomaton, MOST_PROCESSES, type Move, type State } from "./automaton.ts";
import { GOALS } from "./promises.ts";
import type { Explored } from "./shell.ts";

export interface Broken {
  readonly promise: string;
  /** The shortest way there. */
  readonly trace: readonly string[];
}

export interface Exploration {
  readonly states: number;
  readonly broken: Broken | null;
  /** Every answer that was given, and every state of a row that was met. */
  readonly covered: ReadonlySet<string>;
}

/** Visits every state, nearest first, until a promise is broken; then asks whether the good ends stay within reach of each. */
export function explore(explored: Explored): Exploration {
  const automaton = createAutomaton(explored);
  const visited = createVisited(automaton.start);
  const broken = walk(automaton, visited) ?? outOfReach(explored, automaton, visited);
  return { states: visited.states.length, broken, covered: automaton.covered };
}

function walk(automaton: Automaton, { states, edges, edgesFrom, delivered, indexOf, traceTo }: Visited): Broken | null {
  for (let i = 0; i < states.length; i++) {
    let bits = 0;
    edgesFrom.push(edges.length);
    for (const move of automaton.moves(states[i] ?? automaton.start)) {
      const promise = move.outcome?.broken;
      if (promise) return { promise, trace: traceTo(automaton, i, move) };
      bits |= move.outcome?.delivered ?? 0;
      edges.push(indexOf(canonical(move.to), i));
    }
    delivered.push(bits);
  }
  edgesFrom.push(edges.length);
  return null;
}

type Visited = ReturnType<typeof createVisited>;

/** The states in the order of their distance, what leads where, and which results an answer in each of them gives. */
function createVisited(start: State) {
  const states: State[] = [];
  const parents: number[] = [];
  const edges: number[] = [];
  const edgesFrom: number[] = [];
  const delivered: number[] = [];
  const known: Map<number, number>[] = [];
  const indexOf = (state: State, parent: number): number => {
    const [now = 0] = state;
    let key = 0;
    for (let i = state.length - 1; i > 0; i--) key = key * MOST_PROCESSES + (state[i] ?? 0);
    known[now] ??= new Map<number, number>();
    const before = known[now].get(key);
    if (before !== undefined) return before;
    known[now].set(key, states.length);
    parents.push(parent);
    return states.push(state) - 1;
  };
  indexOf(canonical(start), 0);

  /** The way to a state, and one move on, told with processes that keep their names. */
  const traceTo = (automaton: Automaton, index: number, last?: Move): string[] => {
    const path = last ? [canonical(last.to)] : [];
    for (let i = index; i > 0; i = parents[i] ?? 0) path.push(states[i] ?? start);
    let state = start;
    return path.reverse().map((next, i) => {
      const broken = last && i === path.length - 1 ? last.outcome?.broken : undefined;
      const leads = (move: Move) =>
        `${canonical(move.to)}` === `${next}` && (!broken || move.outcome?.broken === broken);
      const move = automaton.moves(state).find(leads);
      if (move === undefined) throw new Error("a trace leads nowhere");
      state = move.to;
      return named(move);
    });
  };
  return { states, edges, edgesFrom, delivered, indexOf, traceTo };
}

/** The API processes are interchangeable: a state and its mirror image are one. */
function canonical(state: State): State {
  for (let i = 2; i < state.length - 1; i++) {
    if ((state[i - 1] ?? 0) >= (state[i] ?? 0)) continue;
    const [now = 0, ...processes] = state;
    const resolver = processes.pop() ?? 0;
    return [now, ...processes.sort((a, b) => b - a), resolver];
  }
  return state;
}

const named = ({ label, by, to }: Move): string =>
  by === 0 ? label : by === to.length - 1 ? `resolver ${label}` : `P${by} ${label}`;

/** The good end that the nearest state cannot reach any more. */
function outOfReach({ world }: Explored, automaton: Automaton, visited: Visited): Broken | null {
  const goals = GOALS.filter(
    ({ needsResolver, needsCalm }) => !(needsResolver && world.resolver === "sleeps") && !(needsCalm && !world.calm),
  );
  const stuck = goals
    .map(({ name, reached }) => {
      const good = visited.states.map(([now = 0], i) => {
        const at = automaton.surroundings[now];
        const bits = visited.delivered[i] ?? 0;
        return at !== undefined && reached(at, (authorization) => (bits & (1 << authorization)) !== 0) ? 1 : 0;
      });
      return { name, from: cannotReach(visited, Uint8Array.from(good)) };
    })
    .filter(({ from }) => from >= 0)
    .sort((a, b) => a.from - b.from)[0];
  return stuck ? { promise: stuck.name, trace: visited.traceTo(automaton, stuck.from) } : null;
}

/** The first state from which no way leads to a good one. Sweeps backwards until nothing changes. */
function cannotReach({ edges, edgesFrom }: Visited, can: Uint8Array): number {
  for (let changed = true; changed; ) {
    changed = false;
    for (let i = can.length - 1; i >= 0; i--) {
      if (can[i] === 1) continue;
      const end = edgesFrom[i + 1] ?? 0;
      let edge = edgesFrom[i] ?? 0;
      while (edge < end && can[edges[edge] ?? 0] !== 1) edge++;
      if (edge === end) continue;
      can[i] = 1;
      changed = true;
    }
  }
  return can.indexOf(0);
}
