import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../package.json" with { type: "json" };

/*
 * The service and all its packages share the version in package.json. `npm version` runs this file, which writes the version
 * everywhere else, and dates the changelog.
 */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CHANGELOG = "CHANGELOG.md";

/** The members of package.json that `npm version` sets. `repository.url` may be missing until there is a public repository. */
export interface Release {
  readonly version: string;
  readonly repository?: { readonly url?: string };
}

/** Returns the files that contain the version, relative to the repository. */
export const versionedFiles = (root = ROOT): readonly string[] =>
  ["README.md", "packages/*/{package.json,README.md,pyproject.toml}", "packages/mcp/src/free-server.ts"]
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .sort();

/** Replaces the version in a file. */
export function withVersion(file: string, text: string, { version, repository }: Release): string {
  if (file.endsWith("package.json")) {
    const stated = JSON.parse(text);
    stated.version = version;
    if (repository?.url !== undefined) stated.repository.url = repository.url;
    return `${JSON.stringify(stated, null, 2)}\n`;
  }
  if (file.endsWith("pyproject.toml")) return text.replace(/(?<=^version = ")[^"]*/m, version);
  if (file.endsWith(".ts")) return text.replace(/(?<=^const IMPLEMENTATION = .*version: ")[^"]*/m, version);
  return text.replace(/(?<=\bagent[-_]payment[-_]trust(-[a-z-]+)?-)\d+\.\d+\.\d+(?=\.tgz|-py3)/g, version);
}

/** Dates the newest section of the changelog. */
export function releasedOn(day: string, text: string, { version }: Release): string {
  const heading = new RegExp(`^## \\[(${version.replaceAll(".", "\\.")}|Unreleased)\\].*$`, "m");
  if (!heading.test(text)) throw new Error(`${CHANGELOG} has no section [${version}] or [Unreleased].`);
  return text.replace(heading, `## [${version}] - ${day}`);
}

/** The files in a release. A commit that changes only other files does not need a new version. */
const SHIPPED = ["api", "contracts", "docs", "indexer", "packages", "scripts", "package-lock.json", "tsconfig.json"];

/**
 * Returns the reason that the files must not be built under their version, or null. The reason is that they differ from the
 * release of that version. Reads the tags of the checkout.
 */
export function versionProblem({ version }: Pick<Release, "version">, root = ROOT): string | null {
  const tag = `v${version}`;
  const git = (...args: readonly string[]) => spawnSync("git", args, { cwd: root, encoding: "utf8" });
  if (git("rev-parse", "--quiet", "--verify", `refs/tags/${tag}`).status !== 0) return null;
  const { status, stdout, stderr } = git("diff", "--name-only", tag, "--", ...SHIPPED);
  if (status !== 0) throw new Error(`git diff ${tag}: ${stderr.trim()}`);
  const [first, ...more] = stdout.split("\n").filter(Boolean);
  if (first === undefined) return null;
  const files = more.length === 0 ? first : `${first} and ${more.length} more`;
  return `Version ${version} is released (tag ${tag}), and ${files} changed since. Run npm version patch, minor, or major.`;
}

if (import.meta.main) {
  if (!/^\d+\.\d+\.\d+$/.test(manifest.version)) throw new Error(`${manifest.version} is not like 1.2.3.`);
  const write = (file: string, change: (text: string) => string) => {
    const path = join(ROOT, file);
    writeFileSync(path, change(readFileSync(path, "utf8")));
  };
  for (const file of versionedFiles()) write(file, (text) => withVersion(file, text, manifest));
  write(CHANGELOG, (text) => releasedOn(new Date().toISOString().slice(0, 10), text, manifest));
}
