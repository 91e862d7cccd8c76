import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { openDuck } from "../../indexer/history/duck.ts";
import { folderForFile, forFile } from "../support/for-file.ts";

// https://github.com/duckdb/duckdb/issues/25158: where rows are ordered by a cast to a narrower type, top-n leaves some out.

const ROWS = 60_000;
const LARGEST = 1_000_000;
/** In no order, so that the limit is learned from rows before the largest one. */
const TABLE = `create table numbers as select (range * 7919) % 1000003 as n from range(${ROWS})`;
const LAST = "select n from (select n::integer as n from numbers where n >= 0) order by n desc limit 1";

test("DuckDB still has the fault; once this fails, remove `disabled_optimizers` from duck.ts", async () => {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run(TABLE);
  const [[last] = []] = (await connection.runAndReadAll(LAST)).getRowsJS();
  connection.closeSync();
  instance.closeSync();
  expect(last).toBeLessThan(LARGEST);
});

test("the preload's DuckDB finds the last row", async () => {
  const duck = await openDuck(join(await folderForFile("trust-duck-"), "duck"));
  await forFile({ end: async () => duck.close() });
  await duck.run(TABLE);
  expect(await duck.rows("select max(n)::integer as n from numbers")).toEqual([{ n: LARGEST }]);
  expect(await duck.rows(LAST)).toEqual([{ n: LARGEST }]);
});
