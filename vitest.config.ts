import { defineConfig } from "vitest/config";
import { COMPILE_CACHE } from "./scripts/embedded/compile-cache.ts";

// Inherited by the workers, and by every program that a test starts.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

/** Journeys that also run on a chain like Base. */
const ALSO_LIKE_BASE = ["payments/reorganizations.slow", "payments/replays", "payments/stock-clients"].map(
  (name) => `test/journeys/${name}.test.ts`,
);

/** Chaos, browsers, foreign clients, installed packages, whole-chain recounts: what `npm run test:slow` runs. */
const SLOW = "test/**/*.slow.test.ts";

/** Of every project that needs PostgreSQL and chains. */
const ON_THE_STACK = {
  globalSetup: ["test/support/runner/stack.ts"],
  setupFiles: ["test/support/runner/every-file.ts"],
  // The files of one worker share what they import: a quarter of all their time otherwise.
  isolate: false,
  // On a machine with other work, a test takes several times as long as alone.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
};

export default defineConfig({
  test: {
    projects: [
      { test: { name: "architecture", include: ["test/architecture/**/*.test.ts"] } },
      {
        test: {
          name: "contracts",
          include: ["test/contracts/**/*.test.ts"],
          globalSetup: ["test/support/runner/contracts.ts"],
          // Hardhat is loaded once a worker, not once a file: two fifths of all their time otherwise.
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      // Alone in its process: it counts every connection that the process opens.
      { test: { name: "sockets", include: ["test/api/arbiter/ssrf.test.ts"], testTimeout: 60_000 } },
      {
        test: {
          name: "stack",
          include: ["test/**/*.test.ts"],
          exclude: ["test/architecture/**", "test/contracts/**", "test/api/arbiter/ssrf.test.ts", SLOW],
          ...ON_THE_STACK,
        },
      },
      { test: { name: "slow", include: [SLOW], exclude: ["test/base-like/**"], ...ON_THE_STACK } },
      { test: { name: "base", include: ["test/base-like/**/*.slow.test.ts", ...ALSO_LIKE_BASE], ...ON_THE_STACK } },
    ],
    // Hundreds of databases are removed by then.
    teardownTimeout: 60_000,
    pool: "forks",
    // Two a core: a good part of the slow files waits for blocks, leases and deadlines. Three left a fifth of two cores idle.
    maxWorkers: 4,
    reporters: ["default", "./test/support/runner/counting-reporter.ts"],
  },
});
