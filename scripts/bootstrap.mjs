// Plain JavaScript for Node 20: it runs before anything is installed.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const LOCK = join(ROOT, "package-lock.json");
const INSTALLED = join(ROOT, "node_modules", ".package-lock.json");
const NODE = join(ROOT, "node_modules", ".bin", "node");
const WANTED = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).devDependencies.node;

const fresh = !isInstalled();
if (fresh) install();
const version = versionOf(NODE);
if (version !== WANTED) {
  fail(
    `${NODE} is ${version === null ? "missing" : `Node ${version}`}, but Node ${WANTED} is required.`,
    "The npm package `node` provides it. Delete node_modules and run the command again; npm's output above may say why it failed.",
  );
}
if (fresh) {
  compile();
  pack();
}

function isInstalled() {
  return existsSync(INSTALLED) && statSync(INSTALLED).mtimeMs >= statSync(LOCK).mtimeMs;
}

function install() {
  // `npm ci` refuses a lock file that does not list other platforms' optional packages; this keeps to the lock and leaves it alone.
  const npm = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--include=dev", "--include=optional"];
  // An npm on an older Node silently leaves out native packages whose `engines` it does not meet.
  const command = isOlderThan(22, 12) ? ["npx", "-y", "-p", `node@${WANTED}`, "--", ...npm] : npm;
  console.log(`Installing dependencies (takes about a minute, only the first time): ${command.join(" ")}`);
  const started = Date.now();
  const { status, error } = run(command[0], command.slice(1));
  if (status !== 0)
    fail(`The dependencies could not be installed: ${error?.message ?? `npm exited with code ${status}`}.`);
  console.log(`The dependencies are installed (${Math.round((Date.now() - started) / 1000)} s).`);
}

/** Saves the first start from doing this, which would take longer and twice the memory. */
function compile() {
  const { status } = run(NODE, [join(ROOT, "node_modules", ".bin", "hardhat"), "build"]);
  if (status !== 0) fail(`The contracts could not be compiled: hardhat build exited with code ${status}.`);
  utimesSync(INSTALLED, new Date(), new Date());
}

/**
 * Saves the first start from doing this. The service also starts without the packages, so a failure is only reported.
 */
function pack() {
  run(NODE, [join(ROOT, "scripts", "packages.ts")]);
}

function run(program, args) {
  return spawnSync(program, args, { cwd: ROOT, stdio: "inherit" });
}

function isOlderThan(major, minor) {
  const [ours, oursMinor] = process.versions.node.split(".").map(Number);
  return ours < major || (ours === major && oursMinor < minor);
}

function versionOf(program) {
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout.trim().replace(/^v/, "") : null;
}

function fail(...lines) {
  console.error(lines.join("\n"));
  process.exit(1);
}
