import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DirectoryInUseError, removeIfUnused, takeDataDirectory } from "../../../scripts/embedded/data-directory.ts";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { identify } from "../../../scripts/embedded/leftovers.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "data-directory-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("two starts cannot share a data directory", async () => {
  const first = await takeDataDirectory(folder);
  await expect(takeDataDirectory(folder)).rejects.toThrow(DirectoryInUseError);
  await expect(takeDataDirectory(folder)).rejects.toThrow(`process ${process.pid}`);
  first.release();
  (await takeDataDirectory(folder)).release();
});

test.each([
  ["of a process that is gone", JSON.stringify({ pid: 2 ** 22 + 1, startedAt: "1" })],
  ["of an earlier process with our pid", JSON.stringify({ pid: process.pid, startedAt: "another time" })],
  ["that a kill left half-written", '{"pid":'],
])("a lock %s is taken over", async (_, text) => {
  writeFileSync(join(folder, "start.lock"), text);
  (await takeDataDirectory(folder)).release();
});

test("children that a killed start left running are ended, and nobody else", async () => {
  const child = await startGuarded({ command: "sleep", args: ["600"] });
  const stranger = await startGuarded({ command: "sleep", args: ["600"] });
  const children = [identify(child.pid), { pid: stranger.pid, startedAt: "an earlier process with this pid" }];
  writeFileSync(join(folder, "processes.json"), JSON.stringify(children));
  const directory = await takeDataDirectory(folder);
  expect(await child.ended).toBe("SIGINT");
  expect(stranger.running()).toBe(true);
  await stranger.stop();
  directory.release();
});

test("an unused folder is removed again, one with data stays", async () => {
  const fresh = join(folder, "fresh");
  (await takeDataDirectory(fresh)).release();
  removeIfUnused(fresh);
  expect(existsSync(fresh)).toBe(false);
  (await takeDataDirectory(folder)).release();
  writeFileSync(join(folder, "keys.json"), "{}");
  removeIfUnused(folder);
  expect(existsSync(join(folder, "keys.json"))).toBe(true);
});
