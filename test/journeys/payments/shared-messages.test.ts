import { beforeEach, expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createSharedMessages } from "../../../api/adapters/postgres/shared-messages.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const { share, shareAll } = createSharedMessages(await forFile(connect(database.ownerUrl, 4)));
await owner.query("CREATE TABLE shared (name text PRIMARY KEY, xid text NOT NULL DEFAULT pg_current_xact_id()::text)");
beforeEach(() => owner.query("TRUNCATE shared"));

const add = (name: string) =>
  share<{ name: string }>(
    { name: "add", text: "INSERT INTO shared (name) VALUES ($1) RETURNING name", values: [name] },
    name,
  );
const count = (most: string) =>
  share<{ n: number }>(
    { name: "count", text: "SELECT count(*)::int AS n FROM shared WHERE name <= $1", values: [most] },
    `${most}?`,
  );
const stored = async () =>
  (await owner.query<{ name: string; xid: string }>("SELECT name, xid FROM shared ORDER BY name")).rows;
const reasons = (settled: readonly PromiseSettledResult<unknown>[]) =>
  settled.map((one) => (one.status === "fulfilled" ? null : String(one.reason.message)));

test("what comes together is one transaction, and everyone gets the answer to what they asked", async () => {
  const answers = await Promise.all([add("c"), count("b"), add("a"), add("b"), count("c")]);
  // In the order of their locks: a, b, then what is up to b; c, then what is up to c.
  expect(answers.map(({ rows }) => rows)).toEqual([
    [{ name: "c" }],
    [{ n: 2 }],
    [{ name: "a" }],
    [{ name: "b" }],
    [{ n: 3 }],
  ]);
  const rows = await stored();
  expect(rows.map(({ name }) => name)).toEqual(["a", "b", "c"]);
  expect(new Set(rows.map(({ xid }) => xid)).size).toBe(1);
});

test("of many, none is lost, and messages hold a few of them each", async () => {
  const names = Array.from({ length: 200 }, (_, at) => String(at).padStart(3, "0"));
  const answers = await Promise.all(names.map(add));
  expect(answers.map(({ rows }) => rows[0]?.name)).toEqual(names);
  const transactions = new Set((await stored()).map(({ xid }) => xid)).size;
  expect(transactions).toBe(Math.ceil(names.length / 32));
});

test("one that fails fails alone, and leaves no connection that does not know what it has prepared", async () => {
  const { share: shareOne } = createSharedMessages(await forFile(connect(database.ownerUrl, 1)));
  const ask = (name: string, text: string) => shareOne({ name, text, values: [] }, name);
  const one = { name: "1 one", text: "INSERT INTO shared (name) VALUES ('a')" };
  const wrong = { name: "2 wrong", text: "SELECT 1 / (SELECT count(*) - 1 FROM shared)" };
  const late = { name: "3 late", text: "INSERT INTO shared (name) VALUES ('b')" };
  const settled = await Promise.allSettled([late, one, wrong].map(({ name, text }) => ask(name, text)));
  expect(reasons(settled)).toEqual([null, null, expect.stringContaining("division by zero")]);
  expect((await stored()).map(({ name }) => name)).toEqual(["a", "b"]);
});

test("when the connection is lost, all that shared it reject, and none of them is sent again", async () => {
  await owner.query("BEGIN");
  await owner.query("INSERT INTO shared (name) VALUES ('b')");
  const sent = Promise.allSettled([add("a"), add("b"), add("c")]);
  const end = `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await expect.poll(async () => (await owner.query(end)).rows).toEqual([{ ended: true }]);
  await owner.query("ROLLBACK");
  for (const reason of reasons(await sent)) expect(reason).toMatch(/terminat/);
  expect(await stored()).toEqual([]);
  expect((await add("d")).rows).toEqual([{ name: "d" }]);
});

test("several of one payment take effect together or not at all, and those beside them on their own", async () => {
  const insert = (name: string) => ({
    name: "add",
    text: "INSERT INTO shared (name) VALUES ($1) RETURNING name",
    values: [name],
  });
  const settled = await Promise.allSettled([
    shareAll([insert("a"), insert("b")], "1"),
    shareAll([insert("c"), insert("a")], "2"),
    shareAll([insert("d")], "3"),
  ]);
  expect(reasons(settled)).toEqual([null, expect.stringContaining("duplicate key"), null]);
  expect((await stored()).map(({ name }) => name)).toEqual(["a", "b", "d"]);
  const [first] = settled.map((one) => (one.status === "fulfilled" ? one.value.map(({ rows }) => rows) : null));
  expect(first).toEqual([[{ name: "a" }], [{ name: "b" }]]);
});
