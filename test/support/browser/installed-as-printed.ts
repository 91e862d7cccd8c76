import { join } from "node:path";
import { folderForFile } from "../for-file.ts";
import { newVirtualEnvironment } from "../packages/wheels.ts";
import type { PageCode, Reader } from "./page-code.ts";

/** A page's commands, and the reader who runs them. */
export interface Ready {
  readonly reader: Reader;
  readonly commands: PageCode;
}

/** The lines of a page's commands that install packages. They come first. */
const INSTALL = /^(?:.*\n)*?(?:npm|pip) install (?:.*\\\n)*.*\n?/;
const NEW_ENVIRONMENT = "python3 -m venv .venv && ";
const ACTIVATE = ". .venv/bin/activate\n";
const isPython = (install: string): boolean => install.startsWith(NEW_ENVIRONMENT);

/**
 * Returns a function that prepares a folder for a page's commands. All commands with the same packages have one folder,
 * and only the first ones run the lines that install them. Commands that install nothing get a new folder. The first
 * virtual environment is created as printed. The others would only unpack the same pip again.
 */
export function installedAsPrinted(env: Reader["env"]): (commands: PageCode) => Promise<Ready> {
  const readers = new Map<string, Reader>();
  let hasEnvironment = false;
  return async (commands) => {
    const [install] = INSTALL.exec(commands.text) ?? [];
    const from = (index: number, before = ""): PageCode => ({ ...commands, text: before + commands.text.slice(index) });
    const known = readers.get(install ?? "");
    if (install !== undefined && known !== undefined)
      return { reader: known, commands: from(install.length, isPython(install) ? ACTIVATE : "") };
    const reader = { home: await folderForFile("as-printed-"), env };
    if (install === undefined) return { reader, commands };
    readers.set(install, reader);
    if (!isPython(install)) return { reader, commands };
    const isFirst = !hasEnvironment;
    hasEnvironment = true;
    if (isFirst) return { reader, commands };
    await newVirtualEnvironment(join(reader.home, ".venv"));
    return { reader, commands: from(NEW_ENVIRONMENT.length) };
  };
}
