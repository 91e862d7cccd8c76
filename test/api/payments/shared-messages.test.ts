import { randomBytes } from "node:crypto";
import { type AddressInfo, createServer, connect as openSocket } from "node:net";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { connect, inTransaction } from "../../../api/platform/db/connection.ts";
import { createSharedMessages } from "../../../api/platform/db/shared-messages.ts";
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

test("one that fails fails alone, and leaves a connection that knows what it has prepared", async () => {
  const pool = await forFile(connect(database.ownerUrl, 1));
  const { share: shareOne } = createSharedMessages(pool);
  const ask = (name: string, text: string) => shareOne({ name, text, values: [] }, name);
  const session = async () => (await pool.query("SELECT pg_backend_pid() AS pid")).rows;
  const before = await session();
  const one = { name: "1 one", text: "INSERT INTO shared (name) VALUES ('a')" };
  const wrong = { name: "2 wrong", text: "SELECT 1 / (SELECT count(*) - 1 FROM shared)" };
  const late = { name: "3 late", text: "INSERT INTO shared (name) VALUES ('b')" };
  const settled = await Promise.allSettled([late, one, wrong].map(({ name, text }) => ask(name, text)));
  expect(reasons(settled)).toEqual([null, null, expect.stringContaining("division by zero")]);
  expect((await stored()).map(({ name }) => name)).toEqual(["a", "b"]);
  expect((await ask(wrong.name, wrong.text)).rowCount).toBe(1);
  expect(await session()).toEqual(before);
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
    shareAll([insert("c"), insert("c")], "2"),
    shareAll([insert("d")], "3"),
  ]);
  expect(reasons(settled)).toEqual([null, expect.stringContaining("duplicate key"), null]);
  expect((await stored()).map(({ name }) => name)).toEqual(["a", "b", "d"]);
  const [first] = settled.map((one) => (one.status === "fulfilled" ? one.value.map(({ rows }) => rows) : null));
  expect(first).toEqual([[{ name: "a" }], [{ name: "b" }]]);
});

test("what fails at COMMIT fails alone too", async () => {
  await owner.query("CREATE TABLE child (name text REFERENCES shared DEFERRABLE INITIALLY DEFERRED)");
  onTestFinished(async () => void (await owner.query("DROP TABLE child")));
  const child = { name: "child", text: "INSERT INTO child (name) VALUES ($1)", values: ["nobody"] };
  const settled = await Promise.allSettled([add("a"), share(child, "b"), add("c")]);
  expect(reasons(settled)).toEqual([null, expect.stringContaining("foreign key"), null]);
  expect((await stored()).map(({ name }) => name)).toEqual(["a", "c"]);
});

test("a transaction whose failure was overlooked does not count as committed", async () => {
  const pool = await forFile(connect(database.ownerUrl, 1));
  const overlooked = inTransaction(pool, async (client) => {
    await client.query("INSERT INTO shared (name) VALUES ('a')");
    await client.query("SELECT 1 / 0").catch(() => undefined);
  });
  await expect(overlooked).rejects.toThrow("rolled back");
  expect(await stored()).toEqual([]);
});

/** A path to the database on which no transaction can begin. */
async function withoutBegin(): Promise<string> {
  const { hostname, port } = new URL(database.ownerUrl);
  const server = createServer((client) => {
    const upstream = openSocket(Number(port), hostname).on("error", () => client.destroy());
    upstream.pipe(client.on("error", () => upstream.destroy()));
    client.on("data", (sent) => {
      upstream.write(sent.toString("latin1").replace("BEGIN\0", "WRONG\0"), "latin1");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = new URL(database.ownerUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return url.href;
}

test("what was sent without a transaction may have taken effect: it rejects, and is not sent again", async () => {
  const pool = connect(await withoutBegin(), 1);
  onTestFinished(() => pool.end());
  const { share: shareOne } = createSharedMessages(pool);
  const insert = { name: "add", text: "INSERT INTO shared (name) VALUES (gen_random_uuid()::text)" };
  const settled = await Promise.allSettled([shareOne(insert, "a"), shareOne(insert, "b")]);
  expect(reasons(settled)).toEqual([expect.stringContaining("terminated"), expect.stringContaining("terminated")]);
  expect(await stored()).toHaveLength(2);
});

test("payers are locked in the order of their addresses, whichever they are", async () => {
  // One of them has an address with the highest bit set, and two share their first bytes.
  const random = Array.from({ length: 40 }, () => randomBytes(20).toString("hex"));
  const payers = [
    ...random,
    `ff${"00".repeat(19)}`,
    `${"7f".repeat(4)}${"01".repeat(16)}`,
    `${"7f".repeat(20)}`,
  ].sort();
  const keys: number[] = [];
  for (const payer of payers) {
    await owner.query("BEGIN");
    await owner.query("SELECT admit_payment(decode($1, 'hex'), 1, 1)", [payer]);
    const held = "SELECT objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    keys.push(...(await owner.query<{ key: string }>(held)).rows.map(({ key }) => Number(key)));
    await owner.query("COMMIT");
  }
  expect(keys).toHaveLength(payers.length);
  expect(keys).toEqual(keys.toSorted((one, other) => one - other));
});
