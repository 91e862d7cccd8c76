import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Ends the run's output with one plain line that a machine can read: `12 passed, 0 failed`. */
export default class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    // A file that could not be loaded, or a hook that failed, may have no failed test to be counted by.
    const broken = modules.filter((module) => !module.ok() && ![...module.children.allTests("failed")].length).length;
    console.log(`\n${count("passed")} passed, ${count("failed") + broken + unhandled.length} failed`);
  }
}
