import type { Client, DatabaseError } from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { createLogStore } from "../../../api/log/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const store = createLogStore(await forFile(connect(database.apiUrl)));
const HASHES = Buffer.from(Array.from({ length: 96 }, (_, at) => at));

/** SQLSTATE of a statement that the database refuses; null when it does not. */
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

describe("the log is permanent", () => {
  test.each(CHANGES)("the API's role may not: %s", (change) =>
    withClient(database.apiUrl, async (client) => {
      expect(await refusal(client, change)).toBe("42501");
    }),
  );

  const OTHER_HASHES = "UPDATE log_tile SET hashes = set_byte(hashes, 40, 0)";
  const SHORTER = "UPDATE log_tile SET hashes = substr(hashes, 1, 64)";
  const ELSEWHERE = "UPDATE log_tile SET n = 1";
  test.each([...CHANGES, OTHER_HASHES, SHORTER, ELSEWHERE])(
    "nor may the database's owner, not even as a replica: %s",
    (change) =>
      withClient(database.ownerUrl, async (client) => {
        expect(await refusal(client, change)).toBe("23001");
        await client.query("SET session_replication_role = replica");
        expect(await refusal(client, change)).toBe("23001");
      }),
  );

  test.each([OTHER_HASHES, SHORTER, ELSEWHERE])("nor may the API's role: %s", (change) =>
    withClient(database.apiUrl, async (client) => {
      expect(await refusal(client, change)).toBe("23001");
    }),
  );

  test("and the API's role may not take the triggers away", () =>
    withClient(database.apiUrl, async (client) => {
      for (const table of ["log", "log_entry", "log_tile", "log_checkpoint", "log_pending"])
        for (const statement of [`ALTER TABLE ${table} DISABLE TRIGGER ALL`, `DROP TABLE ${table}`])
          expect(await refusal(client, statement)).toBe("42501");
      expect(await refusal(client, "DROP TRIGGER queue ON certificate")).toBe("42501");
    }));
});

describe("what is read", () => {
  test("is the beginning of a tile, as wide as it is asked for", async () => {
    const ids = [3, 1, 4].map((width) => ({ level: 0, n: 0, width }));
    expect(await store.tiles(1, [...ids, { level: 1, n: 0, width: 1 }])).toEqual([
      HASHES,
      HASHES.subarray(0, 32),
      null,
      null,
    ]);
  });

  test("is an entry, by its place or by its record", async () => {
    const entry = { type: "policy", ref: "1", generation: 1, index: 0, entry: Buffer.from("{}") };
    expect(await store.at(1, 0)).toMatchObject(entry);
    expect(await store.find("policy", "1")).toMatchObject(entry);
    expect(await store.findAll("1", ["score_version", "policy"])).toMatchObject([entry]);
    expect(await store.entries(1, 0, 9)).toEqual([entry.entry]);
    expect([await store.find("policy", "2"), await store.at(2, 0)]).toEqual([null, null]);
  });

  test("is a checkpoint, the newest or that of a size, and the generations", async () => {
    const checkpoint = { size: 1, root: HASHES.subarray(0, 32), note: "a note" };
    expect(await store.newest(1)).toMatchObject(checkpoint);
    expect(await store.checkpointAt(1, 1)).toMatchObject(checkpoint);
    expect([await store.newest(2), await store.checkpointAt(1, 2)]).toEqual([null, null]);
    expect(await store.generations()).toMatchObject([{ generation: 1, origin: "trust.example/log", vkey: "a key" }]);
  });
});
