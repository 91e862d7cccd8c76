import type { Client, DatabaseError } from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const HASHES = Buffer.from(Array.from({ length: 96 }, (_, at) => at));

/** The SQLSTATE of a statement that the database rejects, or null if it succeeds. */
const refusal = (client: Client, statement: string): Promise<string | null> =>
  client.query(statement).then(
    () => null,
    (error: DatabaseError) => error.code ?? "unknown",
  );

beforeAll(() =>
  withClient(database.apiUrl, async (client) => {
    await client.query("INSERT INTO log (generation, origin, vkey) VALUES (1, 'trust.example/log', 'a key')");
    await client.query("INSERT INTO log_entry VALUES (1, 0, 'policy', '1', '\\x7b7d')");
    await client.query("INSERT INTO log_tile VALUES (1, 0, 0, $1)", [HASHES]);
    await client.query("INSERT INTO log_checkpoint VALUES (1, 1, $1, 'a note')", [HASHES.subarray(0, 32)]);
  }),
);

const CHANGES = [
  "UPDATE log SET vkey = 'another'",
  "DELETE FROM log",
  "TRUNCATE log",
  "UPDATE log_entry SET entry = '\\x5b5d'",
  "DELETE FROM log_entry",
  "TRUNCATE log_entry",
  "UPDATE log_checkpoint SET note = 'another'",
  "DELETE FROM log_checkpoint",
  "TRUNCATE log_checkpoint",
  "DELETE FROM log_tile",
  "TRUNCATE log_tile",
] as const;

describe("permanent tables of the log", () => {
  test.each(CHANGES)("The API's role must not: %s", (change) =>
    withClient(database.apiUrl, async (client) => {
      expect(await refusal(client, change)).toBe("42501");
    }),
  );

  const OTHER_HASHES = "UPDATE log_tile SET hashes = set_byte(hashes, 40, 0)";
  const SHORTER = "UPDATE log_tile SET hashes = substr(hashes, 1, 64)";
  const ELSEWHERE = "UPDATE log_tile SET n = 1";
  test.each([...CHANGES, OTHER_HASHES, SHORTER, ELSEWHERE])(
    "The database's owner must not, even as a replica: %s",
    (change) =>
      withClient(database.ownerUrl, async (client) => {
        expect(await refusal(client, change)).toBe("23001");
        await client.query("SET session_replication_role = replica");
        expect(await refusal(client, change)).toBe("23001");
      }),
  );

  test.each([OTHER_HASHES, SHORTER, ELSEWHERE])("The API's role must not change tiles: %s", (change) =>
    withClient(database.apiUrl, async (client) => {
      expect(await refusal(client, change)).toBe("23001");
    }),
  );

  test("The API's role cannot remove the triggers", () =>
    withClient(database.apiUrl, async (client) => {
      for (const table of ["log", "log_entry", "log_tile", "log_checkpoint", "log_pending"])
        for (const statement of [`ALTER TABLE ${table} DISABLE TRIGGER ALL`, `DROP TABLE ${table}`])
          expect(await refusal(client, statement)).toBe("42501");
      expect(await refusal(client, "DROP TRIGGER queue ON certificate")).toBe("42501");
    }));
});
