import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { forFile } from "./for-file.ts";

/** An empty folder outside the project, removed after the file's last test. */
export async function folderForFile(prefix: string): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  await forFile({ stop: () => rm(path, { recursive: true, force: true, maxRetries: 20 }) });
  return path;
}
