import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "architecture", include: ["test/architecture.test.ts"] } },
      {
        test: {
          name: "contracts",
          include: ["test/contracts/**/*.test.ts"],
          globalSetup: ["test/support/contracts.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "stack",
          include: ["test/**/*.test.ts"],
          exclude: ["test/architecture.test.ts", "test/contracts/**"],
          globalSetup: ["test/support/stack.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
    teardownTimeout: 15_000,
    pool: "forks",
    // More than cores: a good part of the slow files waits for blocks, leases and deadlines.
    maxWorkers: 3,
    reporters: ["default", "./test/support/counting-reporter.ts"],
  },
});
