import { type Automaton, createAutomaton, type Move, type State } from "./automaton.ts";
import { GOALS, type Goal } from "./promises.ts";
import type { Explored } from "./shell.ts";
import { createNumbers, createVisited } from "./visited.ts";

export interface Broken {
  readonly promise: string;
  /** The shortest path to the broken promise. */
  readonly trace: readonly string[];
}

export interface Exploration {
  readonly states: number;
  readonly broken: Broken | null;
  /** Every answer and row state that was reached. */
  readonly covered: ReadonlySet<string>;
}

/**
 * Visits every state, nearest first, until a promise breaks. Otherwise checks that the good ends are reachable from
 * each.
 */
export function explore(explored: Explored): Exploration {
  const automaton = createAutomaton(explored);
  const graph = createGraph(automaton);
  const broken = walk(automaton, graph) ?? outOfReach(explored, automaton, graph);
  return { states: graph.visited.count(), broken, covered: automaton.covered };
}

function walk(automaton: Automaton, { visited, parents, edges, edgesFrom, delivered, traceTo }: Graph): Broken | null {
  const state = [...automaton.start];
  let from = 0;
  let bits = 0;
  const breaks = ({ outcome, to }: Move): boolean => {
    if (outcome.broken) return true;
    bits |= outcome.delivered;
    const before = visited.count();
    const number = visited.numberOf(canonical(to));
    if (number === before) parents.push(from);
    edges.push(number);
    return false;
  };
  for (; from < visited.count(); from++) {
    bits = 0;
    edgesFrom.push(edges.count());
    visited.read(from, state);
    const last = automaton.find(state, breaks);
    if (last?.outcome.broken) return { promise: last.outcome.broken, trace: traceTo(from, last) };
    delivered.push(bits);
  }
  edgesFrom.push(edges.count());
  return null;
}

type Graph = ReturnType<typeof createGraph>;

/** The states in order of distance, the edges between them, and the results that each state's answers deliver. */
function createGraph(automaton: Automaton) {
  const { start } = automaton;
  const visited = createVisited(start.length);
  const [parents, edges, edgesFrom, delivered] = [createNumbers(), createNumbers(), createNumbers(), createNumbers()];
  visited.numberOf(canonical([...start]));
  parents.push(0);

  /** Returns the labels of the path to a state and of one more move, with consistent process names. */
  const traceTo = (number: number, last?: Move): string[] => {
    const broken = last?.outcome.broken;
    const path = last ? [canonical([...last.to])] : [];
    const comesFrom = parents.all();
    for (let at = number; at > 0; at = comesFrom[at] ?? 0) {
      const state = [...start];
      visited.read(at, state);
      path.push(state);
    }
    let state = start;
    return path.reverse().map((next, i) => {
      const wanted = i === path.length - 1 ? broken : undefined;
      const leads = ({ to, outcome }: Move) =>
        `${canonical([...to])}` === `${next}` && (!wanted || outcome.broken === wanted);
      const move = automaton.find(state, leads);
      if (move === null) throw new Error("a trace leads nowhere");
      state = [...move.to];
      return named(move);
    });
  };
  return { visited, parents, edges, edgesFrom, delivered, traceTo };
}

/** Sorts the API processes of a state. They are interchangeable, so a state and its permutations are the same. */
function canonical(state: number[]): State {
  for (let end = state.length - 2; end > 1; end--)
    for (let i = 1; i < end; i++) {
      const one = state[i] ?? 0;
      const next = state[i + 1] ?? 0;
      if (one >= next) continue;
      state[i] = next;
      state[i + 1] = one;
    }
  return state;
}

const named = ({ label, by, to }: Move): string =>
  by === 0 ? label : by === to.length - 1 ? `resolver ${label}` : `P${by} ${label}`;

/** Returns the good end that cannot be reached from some state, for the nearest such state. */
function outOfReach({ world }: Explored, automaton: Automaton, graph: Graph): Broken | null {
  const goals = GOALS.filter(
    ({ needsResolver, needsCalm }) => !(needsResolver && world.resolver === "sleeps") && !(needsCalm && !world.calm),
  );
  const stuck = goals
    .map((goal) => ({ name: goal.name, from: cannotReach(graph, goodEnds(goal, automaton, graph)) }))
    .filter(({ from }) => from >= 0)
    .sort((a, b) => a.from - b.from)[0];
  return stuck ? { promise: stuck.name, trace: graph.traceTo(stuck.from) } : null;
}

/**
 * Returns 1 for each state that is a good end. The result depends only on the surroundings and the delivered results,
 * which many states share.
 */
function goodEnds({ reached }: Goal, { surroundings }: Automaton, { visited, delivered }: Graph): Uint8Array {
  const given = delivered.all();
  const kinds = 1 + given.reduce((most, bits) => Math.max(most, bits), 0);
  /** For each pair of surroundings and results: 0 until computed, then 1 for a good end or 2 otherwise. */
  const known = new Uint8Array(surroundings.length * kinds);
  const workOut = (now: number, bits: number): 1 | 2 => {
    const at = surroundings[now];
    return at !== undefined && reached(at, (authorization) => (bits & (1 << authorization)) !== 0) ? 1 : 2;
  };
  const good = new Uint8Array(given.length);
  for (let number = 0; number < given.length; number++) {
    const [now, bits] = [visited.surroundingsOf(number), given[number] ?? 0];
    const place = now * kinds + bits;
    if (known[place] === 0) known[place] = workOut(now, bits);
    good[number] = known[place] === 1 ? 1 : 0;
  }
  return good;
}

/** Returns the first state that has no path to a good one, or -1. Sweeps backward until nothing changes. */
function cannotReach(graph: Graph, can: Uint8Array): number {
  const [edges, edgesFrom] = [graph.edges.all(), graph.edgesFrom.all()];
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
