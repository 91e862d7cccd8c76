import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { TextStore } from "./left-out.ts";

const NAME = "agent-payment-trust-mcp";

/**
 * Returns the folder for this program's persistent state: XDG Base Directory Specification; on Windows the local app
 * data.
 */
export function stateFolder(
  { XDG_STATE_HOME: state = "", LOCALAPPDATA: local = "" }: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
): string {
  // The specification requires relative paths to be ignored.
  if (isAbsolute(state)) return join(state, NAME);
  return platform === "win32" && local !== "" ? join(local, NAME) : join(homedir(), ".local", "state", NAME);
}

/** Returns a text file in the folder, one per service. A write is atomic, even if this program crashes. */
export function textFile(folder: string, service: string): TextStore {
  const name = createHash("sha256").update(service).digest("hex").slice(0, 16);
  const file = join(folder, `log-${name}.json`);
  return {
    place: file,
    read: () =>
      readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw error;
      }),
    async write(text) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const temporary = `${file}.${randomUUID()}`;
      await writeFile(temporary, text, { mode: 0o600 });
      await rename(temporary, file);
    },
  };
}
