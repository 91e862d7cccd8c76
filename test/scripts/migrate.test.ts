import { describe, expect, test } from "vitest";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { migrate, migrations } from "../../scripts/migrate.ts";
import { createDatabase, freshDatabase } from "../support/service/database.ts";
import { schemaText } from "../support/service/schema-text.ts";

const schemaOf = (url: string) => withClient(url, schemaText);
const rowsOf = (url: string, text: string) =>
  withClient(url, async (client) => (await client.query({ text, rowMode: "array" })).rows);
const APPLIED = "SELECT name, xmin::text FROM migrations.applied ORDER BY at";

describe("the schema", () => {
  test("It is the committed one (rewrite it with `npx vitest run test/scripts/migrate.test.ts -u`)", async () => {
    const { ownerUrl } = await freshDatabase();
    await expect(await schemaOf(ownerUrl)).toMatchFileSnapshot("schema.txt");
  });

  test("It has a comment on every table, view, sequence, and function", async () => {
    const { ownerUrl } = await freshDatabase();
    const uncommented = `SELECT relname FROM pg_class AS this
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S') AND obj_description(oid, 'pg_class') IS NULL
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = this.oid AND deptype = 'i' AND relkind = 'S')
      UNION ALL SELECT proname FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL`;
    expect(await rowsOf(ownerUrl, uncommented)).toEqual([]);
  });
});

test("The indexer's role may create schemas and has no rights on any of the service's tables", async () => {
  const { indexerUrl } = await freshDatabase();
  const RIGHTS = "select, insert, update, delete, truncate, references, trigger";
  const tables = `SELECT count(*)::int, count(*) FILTER (WHERE has_table_privilege(oid, '${RIGHTS}'))::int FROM pg_class
    WHERE relnamespace IN ('public'::regnamespace, 'migrations'::regnamespace) AND relkind IN ('r', 'v', 'S', 'p')`;
  const [[count, open]] = (await rowsOf(indexerUrl, tables)) as [[number, number]];
  expect([count > 30, open]).toEqual([true, 0]);
  await withClient(indexerUrl, async (client) => {
    for (const statement of [
      "SELECT * FROM certificate",
      "INSERT INTO certificate DEFAULT VALUES",
      "UPDATE certificate SET id = id",
      "DELETE FROM certificate",
      "TRUNCATE certificate CASCADE",
      "ALTER TABLE certificate DISABLE TRIGGER ALL",
      "DROP TABLE certificate CASCADE",
      "CREATE TABLE public.mine (id int)",
      "SET session_replication_role = replica",
      "SET ROLE trust_api",
    ])
      await expect(client.query(statement), statement).rejects.toMatchObject({ code: "42501" });
    await client.query("CREATE SCHEMA mine; CREATE VIEW live.mine AS SELECT 1; DROP VIEW live.mine; DROP SCHEMA mine");
  });
});

describe("migrations", () => {
  test("Simultaneous runs by several processes create one schema, and another run changes nothing", async () => {
    const { ownerUrl } = await createDatabase();
    await Promise.all([migrate(ownerUrl), migrate(ownerUrl), migrate(ownerUrl)]);
    const [schema, applied] = [await schemaOf(ownerUrl), await rowsOf(ownerUrl, APPLIED)];
    expect(schema).toBe(await schemaOf((await freshDatabase()).ownerUrl));
    expect(applied).toEqual([["baseline", expect.any(String)]]);

    await migrate(ownerUrl);
    expect([await schemaOf(ownerUrl), await rowsOf(ownerUrl, APPLIED)]).toEqual([schema, applied]);
  });

  test("Later migrations run once, in order, and a failed one leaves no trace", async () => {
    const { ownerUrl } = await freshDatabase();
    const first = { name: "0001_shelf", sql: "CREATE TABLE shelf (id int)" };
    const broken = { name: "0002_book", sql: "CREATE TABLE book (id int); INSERT INTO shelf SELECT 1 / 0" };
    const mended = { name: "0002_book", sql: "CREATE TABLE book (id int); INSERT INTO shelf VALUES (1)" };
    await expect(migrate(ownerUrl, [...migrations(), first, broken])).rejects.toThrow(
      'The migration "0002_book" failed and changed nothing: division by zero',
    );
    expect(await rowsOf(ownerUrl, "SELECT to_regclass('shelf')::text, to_regclass('book')::text")).toEqual([
      ["shelf", null],
    ]);

    for (let run = 0; run < 2; run++) await migrate(ownerUrl, [...migrations(), first, mended]);
    expect(await rowsOf(ownerUrl, "SELECT count(*)::int FROM shelf")).toEqual([[1]]);
    expect((await rowsOf(ownerUrl, APPLIED)).map(([name]) => name)).toEqual(["baseline", "0001_shelf", "0002_book"]);
  });

  test("They refuse a database on which they ran with another text, and one with tables of unknown origin", async () => {
    const { ownerUrl } = await freshDatabase();
    const [baseline] = migrations();
    const changed = { name: "baseline", sql: `${baseline?.sql} -- changed` };
    await expect(migrate(ownerUrl, [changed])).rejects.toThrow('"baseline" has changed since it ran on this database');
    await rowsOf(ownerUrl, "DELETE FROM migrations.applied");
    await expect(migrate(ownerUrl)).rejects.toThrow("The database has tables, but no record of migrations");
  });
});
