import pg from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { chooseDeployment } from "../../indexer/choose-deployment.ts";
import { costsOfFull, withScope } from "../../indexer/choose-scope.ts";
import { HISTORY_TABLE } from "../../indexer/history/history.ts";
import { freshDatabase } from "../support/service/database.ts";
import { settingsOf } from "./preloaded.ts";

const pools: pg.Pool[] = [];
let db: pg.Pool;

beforeEach(async () => {
  db = new pg.Pool({ connectionString: (await freshDatabase()).ownerUrl, max: 1 });
  pools.push(db);
});
afterAll(() => Promise.all(pools.map((pool) => pool.end())));

const scopeWith = async (changed: Readonly<Record<string, string>> = {}) =>
  (await withScope(settingsOf({ INDEX_SCOPE: "", INDEX_HISTORY: "", START_BLOCK: "", ...changed }), db)).scope;
const serve = (scope: string) => db.query(`create or replace view live.coverage as select '${scope}'::text as scope`);
const begin = (scope: string) =>
  chooseDeployment(db, settingsOf({ INDEX_SCOPE: scope, INDEX_HISTORY: "", START_BLOCK: "" }), {
    ...{ head: 41_000_000, countHolds: async () => 0 },
  });

describe("without INDEX_SCOPE", () => {
  test("a new index has scope selective", async () => {
    expect(await scopeWith()).toBe("selective");
  });

  test.each(["full", "authorised", "selective"])("an index that serves in scope %s keeps it", async (scope) => {
    await begin("full");
    await serve(scope);
    expect(await scopeWith()).toBe(scope);
  });

  test("an index that was begun, and serves nobody yet, goes on", async () => {
    await begin("full");
    expect(await scopeWith()).toBe("full");
    expect(await scopeWith({ START_BLOCK: "7" })).toBe("selective");
  });

  test("an index has the scope of the history that it begins with", async () => {
    expect(await scopeWith({ INDEX_HISTORY: "history" })).toBe("selective");
    await db.query(`create schema history; set search_path to history; ${HISTORY_TABLE};
      insert into history values ('id', 8453, '{}', 'authorised', 1, 2, '3', '[]', 0); set search_path to default`);
    expect(await scopeWith({ INDEX_HISTORY: "history" })).toBe("authorised");
    await serve("full");
    expect(await scopeWith({ INDEX_HISTORY: "history" })).toBe("full");
  });
});

test("INDEX_SCOPE says it, whatever is there", async () => {
  await begin("full");
  await serve("full");
  expect(await scopeWith({ INDEX_SCOPE: "selective" })).toBe("selective");
});

test("what an index of everything costs on Base is said for the blocks that it reads", () => {
  expect(costsOfFull(90 * 43_200)).toEqual({
    ...{ days: 90, gigabytesADay: "13 to 26", gigabytes: "1170 to 2340", hoursOfFirstSync: "41.7 to 83.3" },
  });
  expect(costsOfFull(43_200)).toMatchObject({ days: 1, gigabytes: "13 to 26", hoursOfFirstSync: "0.5 to 0.9" });
});
