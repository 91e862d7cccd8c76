import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { PageCode, Reader } from "../browser/page-code.ts";

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

/**
 * Installs the page's packages at pinned versions. Next is not a dependency of this project, so it comes from this
 * machine's npm registry. Returns false without one.
 */
export async function installNext({ home: cwd }: Reader, { text }: PageCode): Promise<boolean> {
  const names = text.replaceAll(/(?<=\s)[@\w/-]+(?=\s|$)/g, (name) =>
    PINNED[name] === undefined ? name : `${name}@${PINNED[name]}`,
  );
  try {
    await promisify(execFile)("bash", ["-euc", names], { cwd, timeout: 240_000 });
    return true;
  } catch (error) {
    console.warn(`npm could not install Next: ${String(error).slice(0, 500)}`);
    return false;
  }
}
