import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PageCode, Reader } from "../browser/page-code.ts";
import { folderForFile } from "../for-file.ts";

/** The versions that the tests install if a page names none. */
const PINNED: Readonly<Record<string, string>> = {
  next: "16.4.6",
  react: "19.3.1",
  "react-dom": "19.3.1",
  "@x402/next": "2.25.0",
  "@x402/core": "2.27.0",
  "@x402/evm": "2.27.0",
  viem: "2.57.1",
};
const STOCK = Object.entries(PINNED).map(([name, version]) => `${name}@${version}`);

/** The commands on a page for a Next shop, one by one. */
export interface NextCommands {
  readonly install: PageCode;
  readonly build: PageCode;
  readonly start: PageCode;
}

export function nextCommands({ text, ...code }: PageCode): NextCommands {
  const [build = "", start = ""] = text.split("\n").slice(-2);
  const install = text.slice(0, text.indexOf(build));
  return { install: { ...code, text: install }, build: { ...code, text: build }, start: { ...code, text: start } };
}

const run = promisify(execFile);

/**
 * Installs Next and the stock packages once for all runs on this machine. They are not all dependencies of this project,
 * so they come from the machine's npm registry.
 */
async function installStock(): Promise<string> {
  const home = join(tmpdir(), `next-${PINNED.next}-${PINNED["@x402/core"]}-${process.getuid?.() ?? "user"}`);
  if (existsSync(home)) return home;
  const work = await mkdtemp(`${home}-`);
  try {
    await run("npm", ["install", ...STOCK, "--no-audit", "--no-fund"], { cwd: work, timeout: 240_000 });
    await rename(work, home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return home;
}

/** A new folder with Next and the stock packages. Returns null, with a warning, without a registry. */
export async function newNextProject(): Promise<Reader | null> {
  try {
    const stock = await installStock();
    const home = await folderForFile("next-shops-");
    await run("cp", ["-al", join(stock, "node_modules"), home]);
    // npm writes these in place.
    for (const file of ["package.json", "package-lock.json", "node_modules/.package-lock.json"]) {
      await rm(join(home, file), { force: true });
      await cp(join(stock, file), join(home, file));
    }
    return { home, env: {} };
  } catch (error) {
    console.warn(`Next is not tested, because npm could not install it: ${String(error).slice(0, 500)}`);
    return null;
  }
}

/** Runs a page's commands that install packages, at pinned versions. */
export async function installAsPrinted({ home: cwd }: Reader, { text }: PageCode): Promise<void> {
  const pinned = text.replaceAll(/(?<=\s)[@\w/-]+(?=\s|$)/g, (name) =>
    PINNED[name] === undefined ? name : `${name}@${PINNED[name]}`,
  );
  await run("bash", ["-euc", pinned], { cwd, timeout: 240_000 });
}
