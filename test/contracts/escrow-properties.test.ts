import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The columns of each random life's file: the number of times that each move took effect. */
const LIVES = {
  escrow: ["holds", "releases", "refunds", "timeouts", "withdrawals", "credits", "refusals"],
  operator: ["holds", "releases", "refunds", "timeouts", "reclaims", "retries", "refusals"],
} as const;
type Subject = keyof typeof LIVES;
const SUBJECTS = Object.keys(LIVES) as readonly Subject[];
const fileOf = (subject: Subject): string => join(ROOT, `cache/${subject}-moves.txt`);

interface SolidityRun {
  readonly suiteResults: readonly {
    readonly id: { readonly name: string };
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

/** The number of times that the random lives made the move in this column. */
function countMoves(subject: Subject, column: number): number {
  const file = fileOf(subject);
  const runs = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  return runs.reduce((total, line) => total + Number(line.split(" ")[column]), 0);
}

const run = await runSolidityTests();
const moves = SUBJECTS.flatMap((subject) =>
  LIVES[subject].map((move, column) => ({ subject, move, count: countMoves(subject, column) })),
);
for (const { subject, move, count } of moves) console.log(`Random lives of the ${subject}: ${count} ${move}`);

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
    const suites = run.suiteResults.map(({ id }) => id.name);
    expect(suites.toSorted()).toEqual(files.map((name) => name.replace(".t.sol", "Test")).toSorted());
  });

  test.each(moves)("The random lives of the $subject made at least 20 $move", ({ count }) => {
    expect(count).toBeGreaterThanOrEqual(20);
  });
});
