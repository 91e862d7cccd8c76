import hre from "hardhat";

/** Vitest's global setup for the contract tests: compiles once, before several files would at the same time. */
export default async function setup(): Promise<void> {
  await hre.tasks.getTask("build").run({ quiet: true });
}
