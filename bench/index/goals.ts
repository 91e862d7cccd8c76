/** A figure, and from which value on it is good enough. */
export interface Goal {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  readonly isFloor: boolean;
}

/** Prints each figure with its goal; returns whether all were met. */
export function judge(goals: readonly Goal[]): boolean {
  const isReached = ({ value, limit, isFloor }: Goal) => (isFloor ? value >= limit : value <= limit);
  for (const goal of goals) {
    const digits = goal.limit < 1 ? 2 : goal.limit < 10 ? 1 : 0;
    const wanted = `${goal.isFloor ? "at least" : "at most"} ${goal.limit}`;
    const verdict = isReached(goal) ? "reached" : "missed";
    console.log(`${goal.name.padEnd(52)} ${goal.value.toFixed(digits).padStart(8)}   ${wanted.padEnd(16)} ${verdict}`);
  }
  return goals.every(isReached);
}
