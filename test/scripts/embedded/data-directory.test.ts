import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DirectoryInUseError, takeDataDirectory } from "../../../scripts/embedded/data-directory.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "data-directory-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Creates the files of a start. */
function fill(): void {
  mkdirSync(join(folder, "postgres"));
  writeFileSync(join(folder, "keys.json"), "{}");
}

test("Two starts cannot share a data directory", () => {
  const first = takeDataDirectory(folder);
  expect(() => takeDataDirectory(folder)).toThrow(DirectoryInUseError);
  expect(() => takeDataDirectory(folder)).toThrow(`${folder} is in use by another npm start`);
  first.release();
  takeDataDirectory(folder).release();
});

test("The state of a clean stop is resumed once", () => {
  const directory = takeDataDirectory(folder);
  expect(directory.open()).toBe("new");
  fill();
  directory.close();
  expect(directory.open()).toBe("resumed");
  expect(existsSync(join(folder, "keys.json"))).toBe(true);
  expect(directory.open()).toBe("deleted");
  directory.release();
});

test("Without a clean stop, the whole state is deleted, and no other file", () => {
  const directory = takeDataDirectory(folder);
  fill();
  writeFileSync(join(folder, "notes.txt"), "mine");
  expect(directory.open()).toBe("deleted");
  expect(readdirSync(folder).sort()).toEqual(["lock.db", "logs", "notes.txt"]);
  directory.release();
});
