import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The moves that the random lives of each contract must make. Each line of its file is a move that took effect. */
const MOVES = ["hold", "release", "refund", "timeout", "withdrawal or reclaim", "payout refused by USDC", "refusal"];
const SUBJECTS = ["escrow", "operator"] as const;
const fileOf = (subject: string): string => join(ROOT, `cache/${subject}-moves.txt`);

interface SolidityRun {
  readonly suiteResults: readonly {
    readonly id: { readonly name: string; readonly source: string };
    readonly testResults: readonly { readonly name: string; readonly status: string; readonly reason?: string }[];
  }[];
}

/**
 * Runs every Solidity test in Hardhat, which prints each failure with its reason. The global setup has compiled them,
 * because Hardhat writes its cache without a lock and other files compile simultaneously.
 */
async function runSolidityTests(): Promise<SolidityRun> {
  for (const subject of SUBJECTS) rmSync(fileOf(subject), { force: true });
  // Hardhat resolves the artifacts' paths from the working directory.
  process.chdir(ROOT);
  const outcome: { readonly value?: SolidityRun; readonly error?: SolidityRun } = await hre.tasks
    .getTask(["test", "solidity"])
    .run({ noCompile: true });
  const run = outcome.value ?? outcome.error;
  if (run === undefined) throw new Error("Hardhat did not return the results of the Solidity tests.");
  return run;
}

const run = await runSolidityTests();
const moves = SUBJECTS.flatMap((subject) => {
  const made = existsSync(fileOf(subject)) ? readFileSync(fileOf(subject), "utf8").split("\n") : [];
  return MOVES.map((move) => ({ subject, move, count: made.filter((line) => line === move).length }));
});
for (const { subject, move, count } of moves) console.log(`Random lives of the ${subject}: ${count} × ${move}`);

for (const { id, testResults } of run.suiteResults)
  describe(id.name, () => {
    test.each(testResults.map(({ name, status, reason }) => ({ name, status, reason })))(
      "$name",
      ({ status, reason }) => {
        expect(status, reason).toBe("Success");
      },
    );
  });

describe("the run of the Solidity tests", () => {
  test("Every file with tests has run", () => {
    const files = readdirSync(join(ROOT, "test/contracts/solidity")).filter((name) => name.endsWith(".t.sol"));
    const sources = new Set(run.suiteResults.map(({ id }) => basename(id.source)));
    expect([...sources].toSorted()).toEqual(files.toSorted());
  });

  test.each(moves)("The random lives of the $subject made this move at least 20 times: $move", ({ count }) => {
    expect(count).toBeGreaterThanOrEqual(20);
  });
});
