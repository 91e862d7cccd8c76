// Proves the promises of test/contracts/solidity/Promises.sol about the deployed bytecode, for all values, with Halmos:
// `npm run prove`, and `npm run prove -- --function check_aRefund` for some of them. Halmos is a Python program that reads
// what Foundry builds; Hardhat's compiler says the same, in other files.
import { spawnSync } from "node:child_process";
import { chmodSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { buildContracts } from "./embedded/build-contracts.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HALMOS = "halmos@0.3.3";
const HOME = join(ROOT, "cache", "halmos");
/** What the properties deploy: the first two by name, as they will be on Base. */
const DEPLOYED = ["Escrow", "ArbiterOperator", "dev/AuthCaptureEscrowStandIn", "dev/Eip3009CollectorStandIn"];
const OPTIONS = ["--forge-build-out", "out", "--solver-timeout-assertion", "120s", "--statistics"];

const METADATA = { compiler: { version: "0.8.37" } };

/** The compiler's answer, as far as it is used. */
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

/** A contract that Hardhat has compiled: the artifact's folder, where the build's answer is too, and the source. */
interface Source {
  readonly artifacts: string;
  readonly path: string;
}

/** Writes what Hardhat has compiled where Foundry would have put it. */
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

/** Halmos calls `forge build` first; what it would build is there. */
function standInForForge(): string {
  const folder = join(HOME, "bin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "forge"), "#!/bin/sh\n");
  chmodSync(join(folder, "forge"), 0o755);
  return folder;
}

/** The command that runs Halmos here, or null. */
function findHalmos(): readonly [string, ...string[]] | null {
  const runs = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: "ignore" }).status === 0;
  if (runs("halmos", "--version")) return ["halmos"];
  return runs("uvx", "--version") ? ["uvx", HALMOS] : null;
}

const halmos = findHalmos();
if (halmos === null) {
  console.error(
    "Halmos is not here. Either install uv (https://docs.astral.sh/uv), which fetches it when it is needed, or use Python 3.11\n" +
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
