import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Ends the run's output with one plain machine-readable line: `12 passed, 0 failed`. */
export default class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    // A file that failed to load, or a failed hook, may have no failed test to count.
    const broken = modules.filter((module) => !module.ok() && ![...module.children.allTests("failed")].length).length;
    console.log(`\n${count("passed")} passed, ${count("failed") + broken + unhandled.length} failed`);
  }
}
