import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createTurns } from "../../../api/adapters/postgres/turns.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const pool = await forFile(connect(database.ownerUrl, 4));
await owner.query("CREATE TABLE turn (place serial PRIMARY KEY, name text NOT NULL)");

test("work that fails takes none of the work that shares its transaction with it", async () => {
  const inTurn = createTurns(pool);
  const add = (name: string) =>
    inTurn("test", async (transaction) => {
      await transaction.query("INSERT INTO turn (name) VALUES ($1)", [name]);
      if (name === "bad") throw new Error("this one fails");
      return name;
    });
  const settled = await Promise.allSettled(["first", "second", "bad", "third"].map(add));
  expect(settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message))).toEqual([
    "first",
    "second",
    "this one fails",
    "third",
  ]);
  const { rows } = await owner.query<{ name: string }>("SELECT name FROM turn ORDER BY place");
  expect(rows.map(({ name }) => name)).toEqual(["first", "second", "third"]);
});
