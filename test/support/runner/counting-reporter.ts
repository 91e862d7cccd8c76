import type { ReportedHookContext, Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

const SILENT_MS = 20_000;

/**
 * Ends the run's output with the reasons that skipped tests gave, and one machine-readable line: `12 passed, 0 failed`.
 * Until then it names every 20 seconds each test, hook, or loading file that has been running for as long.
 */
export default class CountingReporter implements Reporter {
  /** The running entities with their start times. */
  readonly #running = new Map<string, number>();

  onInit(): void {
    setInterval(() => this.#nameSlow(), SILENT_MS).unref();
  }

  onTestModuleQueued(module: TestModule): void {
    this.#running.set(loading(module), performance.now());
  }

  onTestModuleCollected(module: TestModule): void {
    this.#running.delete(loading(module));
  }

  onTestCaseReady(test: TestCase): void {
    this.#running.set(nameOf(test), performance.now());
  }

  onTestCaseResult(test: TestCase): void {
    this.#running.delete(nameOf(test));
  }

  onHookStart(hook: ReportedHookContext): void {
    this.#running.set(hookOf(hook), performance.now());
  }

  onHookEnd(hook: ReportedHookContext): void {
    this.#running.delete(hookOf(hook));
  }

  onTestModuleEnd(module: TestModule): void {
    for (const name of this.#running.keys()) if (name.startsWith(module.relativeModuleId)) this.#running.delete(name);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const reasons = tests.flatMap((test) => {
      const result = test.result();
      return result.state === "skipped" && result.note ? [`${test.module.relativeModuleId}: ${result.note}`] : [];
    });
    for (const reason of new Set(reasons)) console.log(`skipped in ${reason}`);
    // A file that failed to load, or a failed hook, may have no failed test to count.
    const broken = modules.filter((module) => !module.ok() && ![...module.children.allTests("failed")].length).length;
    console.log(`\n${count("passed")} passed, ${count("failed") + broken + unhandled.length} failed`);
  }

  #nameSlow(): void {
    for (const [name, since] of this.#running) {
      const ms = performance.now() - since;
      if (ms >= SILENT_MS) console.log(`running for ${Math.round(ms / 1000)} s: ${name}`);
    }
  }
}

const loading = ({ relativeModuleId }: TestModule): string => `${relativeModuleId}, which loads`;

const nameOf = ({ module, fullName }: TestCase): string => `${module.relativeModuleId} > ${fullName}`;

function hookOf({ name, entity }: ReportedHookContext): string {
  const at =
    entity.type === "module" ? entity.relativeModuleId : `${entity.module.relativeModuleId} > ${entity.fullName}`;
  return `${at}, ${name}`;
}
