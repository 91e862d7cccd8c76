import { type Automaton, createAutomaton, type Move, type State } from "./automaton.ts";
import { GOALS, type Goal } from "./promises.ts";
import type { Explored } from "./shell.ts";
import { createNumbers, createVisited } from "./visited.ts";

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

/** The states in the order of their distance, what leads where, and which results an answer in each of them gives. */
function createGraph(automaton: Automaton) {
  const { start } = automaton;
  const visited = createVisited(start.length);
  const [parents, edges, edgesFrom, delivered] = [createNumbers(), createNumbers(), createNumbers(), createNumbers()];
  visited.numberOf(canonical([...start]));
  parents.push(0);

  /** The way to a state, and one move on, told with processes that keep their names. */
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

/** The API processes are interchangeable: a state and its mirror image are one. Puts them in order. */
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

/** The good end that the nearest state cannot reach any more. */
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

/** 1 for each state that is a good end. What counts is its surroundings and the results that it gives, which many share. */
function goodEnds({ reached }: Goal, { surroundings }: Automaton, { visited, delivered }: Graph): Uint8Array {
  const given = delivered.all();
  const kinds = 1 + given.reduce((most, bits) => Math.max(most, bits), 0);
  /** Of each surroundings with each set of results: 0 until it is worked out, then 1 for a good end, 2 for none. */
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

/** The first state from which no way leads to a good one. Sweeps backwards until nothing changes. */
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
