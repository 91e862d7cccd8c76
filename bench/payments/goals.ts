export interface Goal {
  readonly what: string;
  readonly value: number;
  readonly least?: number;
  readonly most?: number;
}

/** Prints a figure beside its goal; returns whether it is reached. What could not be measured is missed. */
export function judge({ what, value, least = 0, most = Number.POSITIVE_INFINITY }: Goal): boolean {
  const isReached = value >= least && value <= most;
  const goal = least > 0 ? `at least ${least}` : `at most ${most}`;
  console.log(`  ${what} ${value.toFixed(3)}, goal ${goal}: ${isReached ? "reached" : "missed"}`);
  return isReached;
}

/** Every goal, each of them printed. */
export const judgeAll = (goals: readonly Goal[]): boolean => goals.map(judge).every(Boolean);
