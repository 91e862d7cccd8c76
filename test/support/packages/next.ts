import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { PageCode, Reader } from "../browser/page-code.ts";

/** The versions that the tests install where a page names none. */
const PINNED: Readonly<Record<string, string>> = {
  next: "16.4.6",
  react: "19.3.1",
  "react-dom": "19.3.1",
  "@x402/next": "2.25.0",
  "@x402/core": "2.27.0",
  "@x402/evm": "2.27.0",
  viem: "2.57.1",
};

/** The commands that a page prints for a shop on Next, one by one. */
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
 * Installs what the page says, at pinned versions. Next is no dependency of this project: it comes from the registry that this
 * machine's npm is set up for. False where that has none.
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
