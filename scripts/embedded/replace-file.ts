import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";

/** Writes a file so that a kill or a loss of power leaves the old version or the new one, never a mix. */
export function replaceFile(path: string, content: string | Buffer, mode = 0o666): void {
  writeFileSync(`${path}.new`, content, { mode });
  flush(`${path}.new`);
  renameSync(`${path}.new`, path);
}

/** Waits until a file, or the list of a folder's files, is on the disk and survives a loss of power. */
export function flush(path: string): void {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
}
