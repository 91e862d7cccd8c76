import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MOVES_FILE = join(ROOT, "cache/escrow-moves.txt");
const MOVES = ["holds", "releases", "refunds", "timeouts", "withdrawals", "credits", "refusals"] as const;

interface SolidityRun {
  readonly suiteResults: readonly {
    readonly id: { readonly name: string };
    readonly testResults: readonly { readonly name: string; readonly status: string; readonly reason?: string }[];
  }[];
}

/** Hardhat runs every Solidity test, and prints what failed and why. */
async function runSolidityTests(): Promise<SolidityRun> {
  rmSync(MOVES_FILE, { force: true });
  // Hardhat resolves the artifacts' paths from where it runs.
  process.chdir(ROOT);
  const outcome: { readonly value?: SolidityRun; readonly error?: SolidityRun } = await hre.tasks
    .getTask(["test", "solidity"])
    .run({});
  const run = outcome.value ?? outcome.error;
  if (run === undefined) throw new Error("Hardhat did not say how the Solidity tests went.");
  return run;
}

/** How often the random lives of the escrow really made each move. */
function countMoves(): Readonly<Record<(typeof MOVES)[number], number>> {
  const runs = existsSync(MOVES_FILE) ? readFileSync(MOVES_FILE, "utf8").trim().split("\n") : [];
  const sum = (column: number) => runs.reduce((total, line) => total + Number(line.split(" ")[column]), 0);
  return Object.fromEntries(MOVES.map((move, column) => [move, sum(column)])) as ReturnType<typeof countMoves>;
}

const run = await runSolidityTests();
const moves = countMoves();
console.log(`Random lives of the escrow: ${MOVES.map((move) => `${moves[move]} ${move}`).join(", ")}`);

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
  test("every file with tests has run", () => {
    const files = readdirSync(join(ROOT, "test/contracts/solidity")).filter((name) => name.endsWith(".t.sol"));
    const suites = run.suiteResults.map(({ id }) => id.name);
    expect(suites.toSorted()).toEqual(files.map((name) => name.replace(".t.sol", "Test")).toSorted());
    expect(run.suiteResults.flatMap(({ testResults }) => testResults).length).toBeGreaterThan(70);
  });

  test.each(MOVES)("the random lives had many %s", (move) => {
    expect(moves[move]).toBeGreaterThanOrEqual(20);
  });
});
