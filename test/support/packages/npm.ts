import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

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

/** The folder with the `npm` and `npx` of a version; null, and one line, if no registry can be reached. */
export const npmPrograms = (version: string): Promise<string | null> =>
  fetchNpm(version).catch(() => {
    console.warn(`npm ${version} could not be fetched: its test is skipped.`);
    return null;
  });
