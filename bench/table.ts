import { table } from "../scripts/table.ts";

/** Our figure, the peer's in the same run, and the goal for their ratio, or for our figure without a peer. */
export interface Figure {
  readonly name: string;
  readonly ours: number;
  /** The figure of the alternative. */
  readonly peer?: number;
  /** The ratio, if it is not the quotient of the two figures but the median of the rounds' ratios. */
  readonly ratio?: number;
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** Prints the figures with their goals. Returns whether all goals are reached. A figure that was not measured misses its goal. */
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

/** Formats a figure with about three digits. */
export function shown(value: number | undefined): string {
  if (value === undefined) return "";
  return value.toLocaleString("en-US", {
    maximumFractionDigits: Math.abs(value) < 10 ? 3 : Math.abs(value) < 100 ? 1 : 0,
  });
}

/** Returns the median of the rounds' ratios. */
export const medianRatio = <T>(ours: readonly T[], peers: readonly T[], pick: (round: T) => number): number =>
  median(ours.map((one, round) => pick(one) / pick(peers[round] ?? one)));

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
