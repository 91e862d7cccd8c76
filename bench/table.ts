import { table } from "../scripts/table.ts";

/** A figure of ours beside its peer's in the same run, and what is promised of the ratio, or of ours where there is no peer. */
export interface Figure {
  readonly name: string;
  readonly ours: number;
  /** What the other way to do the same reached. */
  readonly peer?: number;
  /** Ours over the peer's, where it is not the quotient of these two: the median of the rounds' ratios. */
  readonly ratio?: number;
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** Prints the figures with their goals; returns whether all of them are reached. A figure that was not measured misses its goal. */
export function report(title: string, figures: readonly Figure[]): boolean {
  const rows = figures.map((figure) => [
    ...[figure.name, shown(figure.ours), shown(figure.peer), shown(ratioOf(figure))],
    ...[goalOf(figure), isReached(figure) ? "" : "missed"],
  ]);
  console.log(`\n${title}\n\n${table(["Figure", "Ours", "Peer", "Ours / peer", "Goal", ""], rows)}\n`);
  return figures.every(isReached);
}

const ratioOf = ({ ours, peer, ratio }: Figure): number | undefined =>
  ratio ?? (peer === undefined ? undefined : ours / peer);

function isReached(figure: Figure): boolean {
  const { atLeast, atMost } = figure;
  const value = ratioOf(figure) ?? figure.ours;
  return (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost);
}

function goalOf({ atLeast, atMost }: Figure): string {
  if (atLeast !== undefined) return `at least ${shown(atLeast)}`;
  return atMost === undefined ? "" : `at most ${shown(atMost)}`;
}

/** With about three digits. */
export function shown(value: number | undefined): string {
  if (value === undefined) return "";
  return value.toLocaleString("en-US", {
    maximumFractionDigits: Math.abs(value) < 10 ? 3 : Math.abs(value) < 100 ? 1 : 0,
  });
}

/** Of each round, the ratio of two figures; their median. */
export const medianRatio = <T>(ours: readonly T[], peers: readonly T[], pick: (round: T) => number): number =>
  median(ours.map((one, round) => pick(one) / pick(peers[round] ?? one)));

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
