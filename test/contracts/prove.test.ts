import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "prove-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the command with a PATH where `halmos` is missing or is our program. */
const prove = (path: string) =>
  spawnSync(process.execPath, ["scripts/prove.ts", "--function", "check_one"], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, PATH: path },
  });

test("Without Halmos it prints how to install it", () => {
  const { status, stderr } = prove("/nowhere");
  expect(stderr).toContain("pip install halmos==0.3.3");
  expect(status).toBe(1);
});

test("Halmos gets Hardhat's artifacts, its options, and a forge that builds nothing", () => {
  const program = join(folder, "halmos");
  // $2 is the value of --root.
  writeFileSync(
    program,
    '#!/bin/sh\n[ "$1" = --version ] && exit 0\nforge build || exit 9\ncd "$2/out" && ls */*\necho "$@"\nexit 7\n',
  );
  chmodSync(program, 0o755);
  const { status, stdout } = prove([folder, "/usr/bin", "/bin"].join(delimiter));
  expect(stdout.split("\n")).toEqual(
    expect.arrayContaining([
      "ArbiterOperator.sol/ArbiterOperator.json",
      "Escrow.sol/Escrow.json",
      "EscrowPromises.t.sol/EscrowPromisesTest.json",
      "ModelUsdc.sol/ModelUsdc.json",
      "OperatorPromises.t.sol/OperatorPromisesTest.json",
    ]),
  );
  expect(stdout).toMatch(/--forge-build-out out .*--function check_one/);
  expect(status).toBe(7);
});
