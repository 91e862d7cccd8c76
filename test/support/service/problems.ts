import { beforeEach } from "vitest";

/** Warnings and errors of the services under test since the running test began. */
const problems: string[] = [];
/** Enough to see the cause. */
const MOST_PROBLEMS = 40;
const WARN = 40;

/** Stores a line of a service's log if it is a warning or an error. */
export function noteProblem(line: string): void {
  const level = Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? 0);
  if (level >= WARN && problems.length < MOST_PROBLEMS) problems.push(line.trimEnd());
}

/** Prints them with a failed test, because "expected 503 to be 200" alone does not name a cause. */
export function printProblemsOfFailedTests(): void {
  beforeEach(({ task, onTestFailed }) => {
    problems.length = 0;
    onTestFailed(() => {
      if (problems.length > 0) console.error(`The service logged during "${task.name}":\n${problems.join("\n")}`);
    });
  });
}
