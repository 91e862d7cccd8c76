import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createGzip } from "node:zlib";
import { PACKAGES, tarballName } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

interface Locked {
  readonly name?: string;
  readonly version?: string;
}

/** The folder of every package in the project's lock file, by name and version. Top-level ones come first. */
function lockedFolders(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Readonly<Record<string, Locked>>;
  };
  const byDepth = Object.entries(packages).sort(([one], [other]) => one.length - other.length);
  const found = new Map<string, Map<string, string>>();
  for (const [path, locked] of byDepth) {
    const name = locked.name ?? path.split("node_modules/").at(-1) ?? "";
    const versions = found.get(name) ?? new Map<string, string>();
    found.set(name, versions);
    if (locked.version !== undefined && !versions.has(locked.version)) versions.set(locked.version, join(ROOT, path));
  }
  return found;
}

export interface TestRegistry {
  /** npm's environment: this registry, a cache in `home`, and no other traffic. */
  readonly environment: (home: string) => Readonly<Record<string, string>>;
  readonly stop: () => void;
}

/** A registry of this project's own dependencies, so that npm installs normally without any other machine. */
export async function startRegistry(): Promise<TestRegistry> {
  const folders = lockedFolders();
  const server = createServer((request, response) => {
    const [name = "", version] = decodeURIComponent(request.url ?? "")
      .slice(1)
      .split("/-/");
    const versions = folders.get(name);
    const folder = version === undefined ? undefined : versions?.get(version.replace(/\.tgz$/, ""));
    if (folder !== undefined) return void sendTarball(folder, response);
    if (versions === undefined || version !== undefined) return void response.writeHead(404).end("{}");
    const origin = `http://${request.headers.host}`;
    response
      .writeHead(200, { "content-type": "application/json", "cache-control": "public, max-age=300" })
      .end(JSON.stringify(packument({ name, versions, origin })));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    environment: (home) => ({
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: join(home, ".npm"),
      npm_config_audit: "false",
      npm_config_fund: "false",
      npm_config_update_notifier: "false",
    }),
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

interface Asked {
  readonly name: string;
  readonly versions: ReadonlyMap<string, string>;
  readonly origin: string;
}

function packument({ name, versions, origin }: Asked) {
  const manifests = [...versions].map(([version, folder]) => {
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return [version, { ...manifest, dist: { tarball: `${origin}/${name}/-/${version}.tgz` } }] as const;
  });
  return { name, "dist-tags": { latest: manifests[0]?.[0] }, versions: Object.fromEntries(manifests) };
}

/**
 * Files that no program reads which Node runs as ES modules: source maps, declarations, and sources, and the `require`
 * builds of viem and ox. They are two thirds of 10,000 files, which npm would unpack for each test.
 */
const UNREAD = /\.map$|\.[cm]?ts$|\/_cjs\//;

/** The folder's own files. npm drops the first component of every path, whatever its name. */
async function sendTarball(folder: string, response: ServerResponse): Promise<void> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(basename(folder), relative(folder, join(entry.parentPath, entry.name))))
    .filter((path) => !path.includes(`${sep}node_modules${sep}`) && !UNREAD.test(path));
  const tar = spawn("tar", ["-cf", "-", "-C", dirname(folder), "--null", "--files-from=-"]);
  tar.stdin.end(files.join("\0"));
  response.writeHead(200, {
    "content-type": "application/gzip",
    "cache-control": "public, immutable, max-age=31557600",
  });
  await pipeline(tar.stdout, createGzip({ level: 1 }), response).catch(() => response.destroy());
}

const run = promisify(execFile);

/** Installs a version of npm next to its final place and then renames it, once for all runs on this machine. */
async function fetchNpm(version: string): Promise<string> {
  const home = join(tmpdir(), `npm-${version}-${process.getuid?.() ?? "user"}`);
  const programs = join(home, "node_modules", ".bin");
  if (existsSync(programs)) return programs;
  const work = await mkdtemp(`${home}-`);
  const options = ["--prefix", work, "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"];
  try {
    await run("npm", ["install", `npm@${version}`, ...options], { cwd: work, timeout: 60_000 });
    await rename(work, home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return programs;
}

/** The folder with the `npm` and `npx` of a version. Returns null and prints a line if no registry is reachable. */
export const npmPrograms = (version: string): Promise<string | null> =>
  fetchNpm(version).catch(() => {
    console.warn(`npm ${version} could not be fetched: its test is skipped.`);
    return null;
  });

/** Puts the tarball of one of our packages into a folder, as the service serves it. */
export async function packInto(home: string, folder: "escrow" | "mcp" | "verifier"): Promise<void> {
  const published = PACKAGES.find((one) => one.folder === folder);
  if (published === undefined) throw new Error(`${folder} is not served.`);
  await copyFile(join(TARBALLS, tarballName(published)), join(home, tarballName(published)));
}

const call = promisify(execFile);

/**
 * Installs `packages/escrow` from its tarball into an empty folder, as npm does with a package without dependencies.
 * viem, its peer dependency, is linked from this project, so no registry is needed. Returns its location.
 */
export async function installEscrowPackage(home: string): Promise<string> {
  const installed = join(home, "node_modules", "agent-payment-trust-escrow");
  await packInto(home, "escrow");
  const [tarball = ""] = (await readdir(home)).filter((name) => name.endsWith(".tgz"));
  await mkdir(installed, { recursive: true });
  await call("tar", ["-xzf", join(home, tarball), "-C", installed, "--strip-components=1"]);
  await linkOwn(home, "viem");
  await writeFile(join(home, "package.json"), '{"type":"module"}');
  return installed;
}

/** Lets a folder use one of this project's packages. */
export async function linkOwn(home: string, name: string): Promise<void> {
  const target = join(home, "node_modules", name);
  await mkdir(join(target, ".."), { recursive: true });
  await symlink(join(ROOT, "node_modules", name), target);
}
