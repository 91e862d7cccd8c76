import canonicalize from "canonicalize";
import type { Client, DatabaseError } from "pg";
import { describe, expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { walkLog } from "../../support/arbiter/log.ts";
import { recordVerdict } from "../../support/arbiter/record.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { handIn, recordParts, startArbiterScene } from "../../support/arbiter/scene.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";
import { send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { freshDatabase, type TestDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const COUNT = 40;

const scene = await forFile(startArbiterScene());
const { chain, service } = scene;
const second = await forFile(
  startService({ chain, database: service.database, config: { signingKey: service.config.signingKey } }),
);
const payer = await newPayer(chain, 250_000n * BigInt(COUNT));
const signed = await Promise.all(Array.from({ length: COUNT }, () => signPayment(payer)));
const bought = await Promise.all(
  signed.map(async (one, number) => {
    const conditions = { payload_text: String(number), expected_sha256: sha256(String(number % 2)) };
    const [at, headers] = [number % 2 === 0 ? service : second, v2(one)];
    for (;;) {
      const answer = await handIn(at, { category: "payload-hash", conditions }, headers);
      if (answer.status !== 503) return answer;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }),
);

describe("the log", () => {
  test(`of ${COUNT} verdicts that two processes reach at once has no gap, and each names the one before it`, async () => {
    expect(bought.map(({ status }) => status)).toEqual(Array(COUNT).fill(200));
    const indices = bought.map(({ body }) => (body.log as { index: number }).index);
    expect(indices.toSorted((one, other) => one - other)).toEqual(Array.from({ length: COUNT }, (_, at) => at + 1));
    const whole = { pages: 1, documents: COUNT, faults: [] };
    expect([await walkLog(scene.service.url), await walkLog(second.url)]).toEqual([whole, whole]);
  });

  test("is shown by the overview with its totals and its head", async () => {
    const { body } = await send(`${second.url}/arbiter`);
    const { head } = body.log as { head: { index: number; sha256: string } };
    expect(head.index).toBe(COUNT);
    expect(body.verdicts).toMatchObject({ release: 2, refund: COUNT - 2, escalate: 0 });
    const { verdicts } = (await send(`${second.url}/arbiter/log?before=3`)).body as { verdicts: { index: number }[] };
    expect(verdicts.map(({ index }) => index)).toEqual([2, 1]);
  });

  test.each(["0", "-1", "x", "", "1e3", "9".repeat(16)])("has no entries before %j: 400", async (before) => {
    const { status, body } = await send(`${second.url}/arbiter/log?before=${before}`);
    expect([status, body.code]).toEqual([400, "malformed_request"]);
  });

  test("has pages, down to the first entry", async () => {
    const database = await copyOf(scene.service.database, (rows) => rows);
    await lengthen(database, 210);
    expect(await walkOver(database)).toEqual({ pages: 3, documents: COUNT + 210, faults: [] });
  });
});

describe("a walk of a log that was tampered with shows it", () => {
  const altered = ({ document, ...row }: Row): Row => ({
    ...row,
    document: document.replace('"category":"payload-hash"', '"category":"http-delivery"'),
  });
  const rehashed = (row: Row): Row => {
    const { document } = altered(row);
    return { ...row, document, sha256: sha256(canonicalize(JSON.parse(document)) ?? "") };
  };

  test.each<[string, (rows: Row[]) => Row[], string[]]>([
    ["a verdict is gone", (rows) => rows.toSpliced(19, 1), ["19: followed by 21", "19: 21 names another hash"]],
    ["the first verdict is gone", (rows) => rows.slice(1), ["the first is 2", "the first one names another before it"]],
    [
      "a document was altered",
      (rows) => rows.with(19, altered(rows[19] as Row)),
      ["20: its document has another hash than its entry", "20: 21 names another hash"],
    ],
    [
      "a document was altered, and its hash too",
      (rows) => rows.with(19, rehashed(rows[19] as Row)),
      ["20: 21 names another hash"],
    ],
  ])("%s", async (_, tamper, faults) => {
    const { faults: found } = await walkOver(await copyOf(scene.service.database, tamper));
    expect(found).toEqual(faults);
  });
});

const CHANGES = [
  "UPDATE verdict SET outcome = 'release'",
  "UPDATE verdict SET document = document || ' ' WHERE idx = 1",
  "DELETE FROM verdict WHERE idx = 1",
  "DELETE FROM verdict",
  "TRUNCATE verdict",
  "TRUNCATE verdict CASCADE",
] as const;

describe("verdicts are permanent", () => {
  test.each(CHANGES)("the API's role may not: %s", (change) =>
    withClient(scene.service.database.apiUrl, async (client) => {
      expect(await refusal(client, change)).toBe("42501");
    }),
  );

  test.each(CHANGES)("nor may the database's owner, not even as a replica: %s", (change) =>
    withClient(scene.service.database.ownerUrl, async (client) => {
      expect(await refusal(client, change)).toBe("23001");
      await client.query("SET session_replication_role = replica");
      expect(await refusal(client, change)).toBe("23001");
    }),
  );

  test.each([
    "ALTER TABLE verdict DISABLE TRIGGER ALL",
    "DROP TRIGGER permanent ON verdict",
    "DROP TABLE verdict",
    "ALTER TABLE verdict ADD COLUMN more text",
    "CREATE RULE quiet AS ON INSERT TO verdict DO INSTEAD NOTHING",
  ])("nor may the API's role take that away: %s", (statement) =>
    withClient(scene.service.database.apiUrl, async (client) => {
      expect(await refusal(client, statement)).toBe("42501");
    }),
  );

  test("a second verdict has neither the place nor the id of one that stands", () =>
    withClient(scene.service.database.apiUrl, async (client) => {
      const again = (idx: string, id: string) =>
        `INSERT INTO verdict SELECT ${idx}, ${id}, supersedes, category, outcome, request, document, sha256, issued_at FROM verdict WHERE idx = 1`;
      expect(await refusal(client, again("1", `'${"0".repeat(32)}'`))).toBe("23505");
      expect(await refusal(client, again("1000", "id"))).toBe("23505");
    }));
});

/** SQLSTATE of a statement that the database refuses; null when it does not. */
const refusal = (client: Client, statement: string): Promise<string | null> =>
  client.query(statement).then(
    () => null,
    (error: DatabaseError) => error.code ?? "unknown",
  );

/** A row of the log as the database has it. */
interface Row {
  readonly idx: number;
  readonly document: string;
  readonly sha256: string;
}

/** A separate database with the same log, or a tampered copy. */
async function copyOf(source: TestDatabase, tamper: (rows: Row[]) => Row[]): Promise<TestDatabase> {
  const { rows } = await withClient(source.ownerUrl, (client) =>
    client.query<{ row: Row }>("SELECT to_jsonb(v) AS row FROM verdict v ORDER BY idx"),
  );
  const copy = await freshDatabase();
  const changed = tamper(rows.map(({ row }) => row));
  await withClient(copy.ownerUrl, (client) =>
    client.query("INSERT INTO verdict SELECT * FROM jsonb_populate_recordset(null::verdict, $1)", [
      JSON.stringify(changed),
    ]),
  );
  return copy;
}

async function walkOver(database: TestDatabase) {
  const service = await startService({ chain: scene.chain, database, jobs: false });
  const walk = await walkLog(service.url);
  await service.stop();
  return walk;
}

/** Further verdicts, without a payment. */
async function lengthen(database: TestDatabase, count: number): Promise<void> {
  const pool = connect(database.apiUrl);
  const record = await recordParts(scene.service, pool);
  const request = claimSchema(CLAIMS).parse({
    category: "payload-hash",
    conditions: { payload_text: "x", expected_sha256: sha256("x") },
  });
  const order = { request: { ...request, dealRef: null, parties: null }, supersedes: null, isScored: false };
  const ids = Array.from({ length: count }, (_, number) => sha256(String(number)).slice(0, 32));
  await Promise.all(ids.map((id) => recordVerdict(record, { ...order, id }, new AbortController().signal)));
  await pool.end();
}
