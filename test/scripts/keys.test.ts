import { execFile } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import type { Hex } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { expect, test } from "vitest";
import { parseConfig } from "../../api/platform/config/config.ts";
import { folderForFile } from "../support/for-file.ts";

const COMMAND = fileURLToPath(new URL("../../scripts/keys.ts", import.meta.url));
const folder = await folderForFile("trust-keys-");

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: number; readonly output: string; readonly errors: string }>((resolve) => {
    execFile(process.execPath, [COMMAND, ...args], { env }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });
const read = (file: string) => parseEnv(readFileSync(file, "utf8")) as Readonly<Record<string, string>>;

const REST = {
  DATABASE_URL: "postgres://trust:secret@db.example/trust",
  BASE_RPC_URL: "https://base.example",
  BASE_SEPOLIA_RPC_URL: "https://sepolia.example",
  PAY_TO_ADDRESS: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
  BASE_URL: "https://trust.example",
};

test("Every secret that the API requires is created with mode 600, and each account is listed with its required funds", async () => {
  const file = join(folder, "trust.env");
  const { code, output, errors } = await run([file]);
  expect([code, errors]).toEqual([0, ""]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const made = read(file);
  expect(parseConfig({ ...REST, ...made })).not.toHaveProperty("problem");
  for (const role of ["FACILITATOR", "ARBITER", "EXAM", "DEPLOYER"]) {
    const address = privateKeyToAddress(made[`${role}_PRIVATE_KEY`] as Hex);
    expect(output).toMatch(new RegExp(`\n${address}  ${role.toLowerCase()}\n  [\\d.]+ (ETH|USDC) on Base.*: .+\n`));
  }
  expect(made.ARBITER_ADDRESS).toBe(privateKeyToAddress(made.ARBITER_PRIVATE_KEY as Hex));
  expect(made.OWN_ADDRESSES).toContain(privateKeyToAddress(made.EXAM_PRIVATE_KEY as Hex));
  for (const [name, value] of Object.entries(made).filter(([key]) => /_KEY|SEED/.test(key)))
    expect([name, output.includes(value)]).toEqual([name, false]);
});

test("Existing values are kept, and a second run adds nothing, even after the deployer was deleted", async () => {
  const file = join(folder, "kept.env");
  const before = `BASE_URL=https://trust.example\nSEALING_KEY=${Buffer.alloc(32, 7).toString("base64url")}`;
  writeFileSync(file, before, { mode: 0o644 });
  expect((await run([file])).output).toContain(`Added to ${file}: SIGNING_KEY, LOG_KEY, DECOY_SEED, FACILITATOR_`);
  const text = readFileSync(file, "utf8");
  expect(text.startsWith(`${before}\n`)).toBe(true);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const deployed = text.replace(/^DEPLOYER_PRIVATE_KEY=.*\n/m, "");
  for (const kept of [text, deployed]) {
    writeFileSync(file, kept);
    expect((await run([file])).output).toContain(`${file} has every secret.\n`);
    expect(readFileSync(file, "utf8")).toBe(kept);
  }
});

test("An invalid secret in the file is named, and nothing is written", async () => {
  const file = join(folder, "wrong.env");
  const text = "SIGNING_KEY=short\nARBITER_PRIVATE_KEY=0x12\n";
  writeFileSync(file, text);
  const { code, errors } = await run([file]);
  expect([
    code,
    errors
      .trim()
      .split("\n")
      .map((line) => line.split(":")[0]),
  ]).toEqual([1, ["SIGNING_KEY is wrong", "ARBITER_PRIVATE_KEY is wrong"]]);
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(await run([])).toMatchObject({ code: 1, errors: expect.stringContaining("Usage: npm run keys") });
});
