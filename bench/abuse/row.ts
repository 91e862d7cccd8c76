import type { Ground } from "./ground.ts";

/** A figure; a text where a number would not say what happened. */
export type Value = number | string;

export interface Goal {
  readonly text: string;
  readonly isReached: (value: Value) => boolean;
}

export interface Row {
  /** Stable: the figures from before are stored under it. */
  readonly id: string;
  /** The line of the table that it belongs to. */
  readonly line: number;
  readonly what: string;
  readonly unit?: string;
  readonly goal: Goal;
}

/** One attack on the real service; it may measure several rows. */
export interface Attack {
  readonly rows: readonly Row[];
  readonly run: (ground: Ground) => Promise<Readonly<Record<string, Value>>>;
}

export const atMost = (limit: number): Goal => ({
  text: `≤ ${limit.toLocaleString("en-US")}`,
  isReached: (value) => typeof value === "number" && value <= limit,
});

export const oneOf = (...wanted: readonly Value[]): Goal => ({
  text: wanted.join(" or "),
  isReached: (value) => wanted.includes(value),
});
