import { renameSync, writeFileSync } from "node:fs";

/** Writes a file so that a kill at any moment leaves the old version or the new one, never a mix. */
export function replaceFile(path: string, content: string | Buffer, mode = 0o666): void {
  writeFileSync(`${path}.new`, content, { mode });
  renameSync(`${path}.new`, path);
}
