import type pg from "pg";
import { describe, expect, test } from "vitest";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { migrate, migrations } from "../../scripts/migrate.ts";
import { createDatabase, freshDatabase } from "../support/service/database.ts";

/** The rights of roles other than the owner. */
const granted = (acl: string, owner: string): string => `coalesce((
  SELECT string_agg(format(E'\\n    GRANT %s TO %s', rights, role), '' ORDER BY role) FROM (
    SELECT CASE grantee WHEN 0 THEN 'public' ELSE grantee::regrole::text END AS role,
      string_agg(privilege_type, ', ' ORDER BY privilege_type) AS rights
    FROM aclexplode(${acl}) WHERE grantee <> ${owner} GROUP BY 1) AS others), '')`;

const commented = (comment: string): string => `coalesce(E'\\n    -- ' || ${comment}, '')`;

const COLUMNS = `SELECT string_agg(format('  %s %s%s%s%s%s', attname, format_type(atttypid, atttypmod),
    CASE WHEN attnotnull THEN ' NOT NULL' END,
    CASE attidentity WHEN 'a' THEN ' GENERATED ALWAYS AS IDENTITY' END,
    CASE attgenerated WHEN 's' THEN ' GENERATED ALWAYS AS ' ELSE ' DEFAULT ' END || pg_get_expr(adbin, adrelid),
    CASE WHEN attstorage <> typstorage THEN ' STORAGE ' || attstorage::text END)
    || ${commented("col_description(attrelid, attnum)")} || ${granted("attacl", "this.relowner")}, E'\\n' ORDER BY attnum)
  FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attrelid = this.oid AND attnum > 0 AND NOT attisdropped AND relkind = 'r'`;

const CONSTRAINTS = `SELECT string_agg(format('  CONSTRAINT %s %s', conname, pg_get_constraintdef(oid)), E'\\n' ORDER BY conname)
  FROM pg_constraint WHERE conrelid = this.oid AND contype <> 'n'`;

const INDEXES = `SELECT string_agg('  ' || pg_get_indexdef(indexrelid), E'\\n' ORDER BY indexrelid::regclass::text)
  FROM pg_index WHERE indrelid = this.oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid)`;

const TRIGGERS = `SELECT string_agg(format('  %s%s', pg_get_triggerdef(oid),
    CASE tgenabled WHEN 'O' THEN '' WHEN 'A' THEN ' -- always' ELSE ' -- disabled' END), E'\\n' ORDER BY tgname)
  FROM pg_trigger WHERE tgrelid = this.oid AND NOT tgisinternal`;

const OWNED = "SELECT FROM pg_depend WHERE objid = this.oid AND classid = 'pg_class'::regclass AND deptype = 'i'";

const PARTS = [
  `SELECT format('SCHEMA %s%s%s', nspname, ${commented("obj_description(oid, 'pg_namespace')")}, ${granted("nspacl", "nspowner")})
   FROM pg_namespace WHERE nspname IN ('public', 'live') ORDER BY nspname`,
  `SELECT format('DEFAULT PRIVILEGES IN SCHEMA %s%s', defaclnamespace::regnamespace, ${granted("defaclacl", "defaclrole")})
   FROM pg_default_acl ORDER BY 1`,
  `SELECT rtrim(pg_get_functiondef(oid), E'\\n') || ${commented("obj_description(oid, 'pg_proc')")} || ${granted("proacl", "proowner")}
   FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname`,
  `SELECT concat_ws(E'\\n', format('%s %s%s%s%s', CASE relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE 'SEQUENCE' END,
     relname, ' WITH ' || array_to_string(reloptions, ', '), ${commented("obj_description(oid, 'pg_class')")}, ${granted("relacl", "relowner")}),
     CASE relkind WHEN 'v' THEN pg_get_viewdef(oid) END, (${COLUMNS}), (${CONSTRAINTS}), (${INDEXES}), (${TRIGGERS}))
   FROM pg_class AS this WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S')
     AND NOT (relkind = 'S' AND EXISTS (${OWNED})) ORDER BY relname`,
];

/** The schema of a database as text. Two databases with the same schema have the same text. Needs no `pg_dump`. */
async function schemaText(client: pg.Client): Promise<string> {
  const texts: string[] = [];
  for (const text of PARTS) {
    const { rows } = await client.query<[string]>({ text, rowMode: "array" });
    texts.push(...rows.map(([part]) => part.trim()));
  }
  return `${texts.join("\n\n")}\n`;
}

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
