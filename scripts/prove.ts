// Proves the promises of test/contracts/solidity/Promises.sol about the deployed bytecode, for all values, with Halmos:
// `npm run prove`, or `npm run prove -- --function check_aRefund` for some of them. Halmos is a Python program that reads
// Foundry's build. Hardhat's compiler has the same output, in different files.
import { spawnSync } from "node:child_process";
import { chmodSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { buildContracts } from "./embedded/build-contracts.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HALMOS = "halmos@0.3.3";
const HOME = join(ROOT, "cache", "halmos");
/** The contracts that the properties deploy. The first two are deployed by name, as on Base. */
const DEPLOYED = ["Escrow", "ArbiterOperator", "dev/AuthCaptureEscrowStandIn", "dev/Eip3009CollectorStandIn"];
const OPTIONS = ["--forge-build-out", "out", "--solver-timeout-assertion", "120s", "--statistics"];

const METADATA = { compiler: { version: "0.8.37" } };

/** The part of the compiler's output that is used. */
interface Output {
  readonly sources: Readonly<Record<string, { readonly id: number; readonly ast: object }>>;
  readonly contracts: Readonly<Record<string, Readonly<Record<string, Compiled>>>>;
}

interface Compiled {
  readonly abi: readonly unknown[];
  readonly evm: {
    readonly bytecode: object;
    readonly deployedBytecode: object;
    readonly methodIdentifiers: Readonly<Record<string, string>>;
  };
}

/** A contract that Hardhat has compiled: the folder with the artifact and the compiler's output, and the source. */
interface Source {
  readonly artifacts: string;
  readonly path: string;
}

/** Writes Hardhat's output to the places where Foundry would put it. */
function layOut(): void {
  rmSync(HOME, { recursive: true, force: true });
  const tests = globSync("test/contracts/solidity/{*Promises.t,ModelUsdc}.sol", { cwd: ROOT });
  for (const path of tests) copy({ artifacts: "cache/test-artifacts", path });
  for (const name of DEPLOYED) copy({ artifacts: "artifacts", path: `contracts/${name}.sol` });
}

function copy({ artifacts, path }: Source): void {
  const folder = join(ROOT, artifacts, path);
  const [some] = globSync("*.json", { cwd: folder });
  const { buildInfoId, inputSourceName } = readJson<{ buildInfoId: string; inputSourceName: string }>(
    join(folder, some ?? "artifact.json"),
  );
  const { output } = readJson<{ output: Output }>(join(ROOT, artifacts, "build-info", `${buildInfoId}.output.json`));
  const { ast, id } = output.sources[inputSourceName] ?? {};
  for (const [name, { abi, evm }] of Object.entries(output.contracts[inputSourceName] ?? {}))
    write(`${basename(path)}/${name}.json`, { abi, ...evm, metadata: METADATA, ast, id });
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8"));

function write(file: string, value: object): void {
  const path = join(HOME, "out", file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(value));
}

/** Halmos first calls `forge build`, whose output already exists. */
function standInForForge(): string {
  const folder = join(HOME, "bin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "forge"), "#!/bin/sh\n");
  chmodSync(join(folder, "forge"), 0o755);
  return folder;
}

/** Returns the command that runs Halmos on this machine, or null. */
function findHalmos(): readonly [string, ...string[]] | null {
  const runs = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: "ignore" }).status === 0;
  if (runs("halmos", "--version")) return ["halmos"];
  return runs("uvx", "--version") ? ["uvx", HALMOS] : null;
}

const halmos = findHalmos();
if (halmos === null) {
  console.error(
    "Halmos is not installed. Either install uv (https://docs.astral.sh/uv), which fetches it when needed, or use Python 3.11\n" +
      `or later: python3 -m venv .halmos && .halmos/bin/pip install ${HALMOS.replace("@", "==")} && PATH=$PWD/.halmos/bin:$PATH npm run prove\n` +
      "The same properties run as fuzz tests in npm test.",
  );
  process.exit(1);
}
await buildContracts(hre, { noTests: false });
layOut();
const [command, ...first] = halmos;
const PATH = [standInForForge(), process.env.PATH].join(delimiter);
const { status } = spawnSync(command, [...first, "--root", HOME, ...OPTIONS, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, PATH },
});
process.exitCode = status ?? 1;
