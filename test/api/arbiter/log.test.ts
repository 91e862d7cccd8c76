import { describe, expect, test } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { handIn, recordParts, startArbiterScene } from "../../support/arbiter/scene.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";
import { recordVerdict, walkVerdicts } from "../../support/arbiter/verdicts.ts";
import { forFile } from "../../support/for-file.ts";
import { PRICES } from "../../support/payments/prices.ts";
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
const payer = await newPayer(chain, PRICES.verdict * BigInt(COUNT));
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

describe("GET /arbiter/log", () => {
  test(`Two processes list the same ${COUNT} verdicts that they decided together, newest first, each with its document's hash`, async () => {
    expect(bought.map(({ status }) => status)).toEqual(Array(COUNT).fill(200));
    const { pages, verdicts } = await walkVerdicts(scene.service.url);
    expect(pages).toBe(1);
    expect(verdicts.map(({ id }) => id).toSorted()).toEqual(bought.map(({ body }) => String(body.id)).toSorted());
    expect(verdicts.map((one) => one.sha256)).toEqual(verdicts.map(({ hash }) => hash));
    const times = verdicts.map(({ issued_at }) => issued_at);
    expect(times).toEqual(times.toSorted().reverse());
    expect((await walkVerdicts(second.url)).verdicts.map(({ id }) => id)).toEqual(verdicts.map(({ id }) => id));
  });

  test("The overview shows the totals and the newest verdict", async () => {
    const { body } = await send(`${second.url}/arbiter`);
    const { head } = body.log as { head: { id: string } };
    expect(body.verdicts).toMatchObject({ release: 2, refund: COUNT - 2, escalate: 0 });
    const { verdicts } = await walkVerdicts(second.url);
    expect(head.id).toBe(verdicts[0]?.id);
    const before = (await send(`${second.url}/arbiter/log?before=${verdicts[COUNT - 3]?.id}`)).body as {
      verdicts: { id: string }[];
      next: string | null;
    };
    expect([before.verdicts.map(({ id }) => id), before.next]).toEqual([verdicts.slice(-2).map(({ id }) => id), null]);
  });

  test.each(["0", "x", "", "0".repeat(31), "0".repeat(32)])(
    "A request for verdicts before %j is a 400",
    async (before) => {
      const { status, body } = await send(`${second.url}/arbiter/log?before=${before}`);
      expect([status, body.code]).toEqual([400, "malformed_request"]);
    },
  );

  test("The list has pages, down to the first verdict", async () => {
    const database = await freshDatabase();
    await store(database, 250);
    const other = await startService({ chain: scene.chain, database, jobs: false });
    const { pages, verdicts } = await walkVerdicts(other.url);
    await other.stop();
    expect([pages, new Set(verdicts.map(({ id }) => id)).size, verdicts.length]).toEqual([3, 250, 250]);
  });
});

/** Stores verdicts without payments. */
async function store(database: TestDatabase, count: number): Promise<void> {
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
