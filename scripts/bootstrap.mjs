// Plain JavaScript for Node 20: it runs before anything is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const LOCK = join(ROOT, "package-lock.json");
const INSTALLED = join(ROOT, "node_modules", ".package-lock.json");
/** What npm has noted of the last installation from here: one by hand leaves something else, or nothing. */
const OWN = join(ROOT, "node_modules", ".installed-by-bootstrap");
const NODE = join(ROOT, "node_modules", ".bin", "node");
const WANTED = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).devDependencies.node;

if (process.platform === "win32") fail("This needs macOS, Linux, or WSL (https://learn.microsoft.com/windows/wsl).");

const reason = whyInstall();
const fresh = reason !== null;
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

/** Null if nothing is to be installed. */
function whyInstall() {
  if (!existsSync(INSTALLED)) return "takes about a minute, only the first time";
  if (statSync(INSTALLED).mtimeMs < statSync(LOCK).mtimeMs) return "package-lock.json has changed";
  if (!existsSync(OWN) || readFileSync(OWN, "utf8") !== digest())
    return "node_modules was installed by hand, and npm on an older Node leaves out native packages";
  return null;
}

function digest() {
  return createHash("sha256").update(readFileSync(INSTALLED)).digest("hex");
}

function install() {
  // `npm ci` refuses a lock file that does not list other platforms' optional packages; this keeps to the lock and leaves it alone.
  const npm = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--include=dev", "--include=optional"];
  // An npm on an older Node silently leaves out native packages whose `engines` it does not meet.
  const command = isOlderThan(22, 12) ? ["npx", "-y", "-p", `node@${WANTED}`, "--", ...npm] : npm;
  console.log(`Installing dependencies (${reason}): ${command.join(" ")}`);
  const started = Date.now();
  const { status, error } = run(command[0], command.slice(1));
  if (status !== 0)
    fail(`The dependencies could not be installed: ${error?.message ?? `npm exited with code ${status}`}.`);
  writeFileSync(OWN, digest());
  console.log(`The dependencies are installed (${Math.round((Date.now() - started) / 1000)} s).`);
}

/** Saves the first start from doing this, which would take longer and twice the memory. Tests compile before they run. */
function compile() {
  const { status } = run(NODE, [join(ROOT, "node_modules", ".bin", "hardhat"), "build", "--no-tests"]);
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
