import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";

/** Replaces a file atomically, even if the process is killed or the power fails. */
export function replaceFile(path: string, content: string | Buffer, mode = 0o666): void {
  writeFileSync(`${path}.new`, content, { mode });
  flush(`${path}.new`);
  renameSync(`${path}.new`, path);
}

/** Flushes a file, or the entries of a folder, to disk. */
export function flush(path: string): void {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
}
