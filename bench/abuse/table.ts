import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Row, Value } from "./row.ts";

/** What was measured against one checkout. */
export interface Measured {
  readonly commit: string;
  readonly date: string;
  readonly machine: string;
  readonly figures: Readonly<Record<string, Value>>;
}

const BEFORE = fileURLToPath(new URL("before.json", import.meta.url));

/** The figures of the last commit without the defenses. */
export const readBefore = (): Measured => JSON.parse(readFileSync(BEFORE, "utf8"));

/** What was not measured this time stays. */
export const writeBefore = (measured: Measured): void => {
  const figures = { ...readBefore().figures, ...measured.figures };
  writeFileSync(BEFORE, `${JSON.stringify({ ...measured, figures }, null, 2)}\n`);
};

const shown = (value: Value | undefined, unit = ""): string => {
  if (value === undefined) return "–";
  const text = typeof value === "number" ? value.toLocaleString("en-US") : value;
  return unit === "" || !/\d$/.test(text) ? text : `${text} ${unit}`;
};

/** One line for each row; a figure that is missing misses its goal. */
export function printTable(rows: readonly Row[], before: Measured["figures"], after: Measured["figures"]): void {
  const cells = rows.map(({ id, line, what, unit, goal }) => [
    String(line),
    what,
    shown(before[id], unit),
    shown(after[id], unit),
    unit === undefined || !/\d$/.test(goal.text) ? goal.text : `${goal.text} ${unit}`,
    goal.isReached(after[id] ?? "not measured") ? "reached" : "missed",
  ]);
  const all = [["", "attack", "before", "after", "goal", ""], ...cells];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all)
    console.log(
      row
        .map((cell, column) => (column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  "),
    );
}
