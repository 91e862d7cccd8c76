import type { State } from "./automaton.ts";

/** A growing list of integers in a typed array, because an explored world has millions of them. */
export interface Numbers {
  push(value: number): void;
  readonly count: () => number;
  /** All pushed numbers. */
  readonly all: () => Int32Array;
}

export function createNumbers(): Numbers {
  let values = new Int32Array(1 << 12);
  let length = 0;
  return {
    push(value) {
      if (length === values.length) values = grown(values);
      values[length++] = value;
    },
    count: () => length,
    all: () => values.subarray(0, length),
  };
}

/** The visited states, numbered in the order of their first visit. */
export interface Visited {
  /** Returns the number of a state and adds the state if it is new. */
  numberOf(state: State): number;
  /** Writes the state with this number into `state`. */
  read(number: number, state: number[]): void;
  /** Returns the number of a state's surroundings, which is its first cell. */
  surroundingsOf(number: number): number;
  readonly count: () => number;
}

/**
 * Creates storage for states of `width` numbers. The states are stored consecutively, and a hash table at most half
 * full finds them.
 */
export function createVisited(width: number): Visited {
  let cells = new Int32Array(width << 12);
  /** The state's number plus 1, or 0 for a free slot. A state is at its hash or at the next free slot. */
  let table = new Int32Array(1 << 13);
  let count = 0;

  function hashAt(from: number): number {
    let hash = 0;
    for (let i = from; i < from + width; i++) hash = mixed(hash, cells[i] ?? 0);
    return hash;
  }
  function enlarge(): void {
    cells = grown(cells);
    table = new Int32Array(table.length * 2);
    for (let number = 0; number < count; number++) {
      let place = hashAt(number * width) & (table.length - 1);
      while (table[place] !== 0) place = (place + 1) & (table.length - 1);
      table[place] = number + 1;
    }
  }
  function isAt(number: number, state: State): boolean {
    for (let i = 0; i < width; i++) if (cells[number * width + i] !== state[i]) return false;
    return true;
  }
  return {
    numberOf(state) {
      let hash = 0;
      for (let i = 0; i < width; i++) hash = mixed(hash, state[i] ?? 0);
      let place = hash & (table.length - 1);
      for (let taken = table[place] ?? 0; taken !== 0; taken = table[place] ?? 0) {
        if (isAt(taken - 1, state)) return taken - 1;
        place = (place + 1) & (table.length - 1);
      }
      for (let i = 0; i < width; i++) cells[count * width + i] = state[i] ?? 0;
      table[place] = ++count;
      if (count * width === cells.length) enlarge();
      return count - 1;
    },
    read(number, state) {
      for (let i = 0; i < width; i++) state[i] = cells[number * width + i] ?? 0;
    },
    surroundingsOf: (number) => cells[number * width] ?? 0,
    count: () => count,
  };
}

/** Fibonacci hashing with the high bits mixed into the low ones. */
function mixed(hash: number, cell: number): number {
  const product = Math.imul(hash ^ cell, 0x9e3779b1);
  return product ^ (product >>> 15);
}

function grown(values: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(values.length * 2);
  larger.set(values);
  return larger;
}
