import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** Something that was started and must be ended. */
type Ending = { readonly stop: () => unknown } | { readonly end: () => unknown } | { readonly close: () => unknown };

const running = new Set<Ending>();

/**
 * Starts a resource that all tests of the file share, as the file loads: `const chain = await
 * forFile(startTestChain());`. It ends after the file's last test, in reverse order of starting.
 */
export async function forFile<T extends Ending>(starting: T | Promise<T>): Promise<T> {
  const started = await starting;
  running.add(started);
  afterAll(() => end(started));
  return started;
}

/**
 * Ends the resources that still run in this worker. They were started inside a test, where Vitest accepts no more
 * hooks, or by a file that failed to load or had no selected test.
 */
export async function endLeftovers(): Promise<void> {
  for (const one of [...running].reverse()) await end(one);
}

async function end(one: Ending): Promise<void> {
  running.delete(one);
  if ("stop" in one) await one.stop();
  else if ("end" in one) await one.end();
  else await one.close();
}

/** An empty folder outside the project that is removed after the file's last test. */
export async function folderForFile(prefix: string): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  await forFile({ stop: () => rm(path, { recursive: true, force: true, maxRetries: 20 }) });
  return path;
}
