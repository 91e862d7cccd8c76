import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { newestState, type StateFiles, stateFiles } from "../../../scripts/embedded/chain-state.ts";

let folder: string;
let files: StateFiles;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "chain-state-"));
  files = stateFiles(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

const state = (best_block_number: number) => JSON.stringify({ best_block_number, accounts: {} });
const save = (height: number) => writeFileSync(files.saved, gzipSync(state(height)));
const loaded = () => {
  const path = newestState(files);
  return path === null ? null : JSON.parse(readFileSync(path, "utf8")).best_block_number;
};

test("a new folder has no state", () => expect(loaded()).toBeNull());

test("the state of a first start that was interrupted before the chain was prepared does not count", () => {
  writeFileSync(files.exit, state(3));
  expect(loaded()).toBeNull();
});

test("the more advanced state is taken, no matter who wrote it", () => {
  save(20);
  writeFileSync(files.exit, state(21));
  expect(loaded()).toBe(21);
  save(22);
  expect(loaded()).toBe(22);
});

test.each([
  ["torn", state(30).slice(0, -5)],
  ["empty", ""],
])("a %s file of the chain's own end is passed over", (_, text) => {
  save(20);
  writeFileSync(files.exit, text);
  expect(loaded()).toBe(20);
});
