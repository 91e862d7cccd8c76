import { describe, expect, test } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import type { verdictDocument } from "../../../api/arbiter/document.ts";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import type { Policy } from "../../../api/arbiter/policy/policy.ts";
import { POLICY_V1 } from "../../../api/arbiter/policy/v1/policy.ts";
import { POLICY_V2 } from "../../../api/arbiter/policy/v2/policy.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import {
  buyVerdict,
  type Claim,
  handIn,
  recordOf,
  recordParts,
  startArbiterScene,
} from "../../support/arbiter/scene.ts";
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

type VerdictDocument = ReturnType<typeof verdictDocument>;

const buy = async (claim: Claim): Promise<VerdictDocument> => {
  const { answer } = await buyVerdict(scene.service, await newPayer(scene.chain), claim);
  return answer.body as unknown as VerdictDocument;
};

const page = async (path: string) =>
  (await send(`${scene.service.url}${path}`, { headers: { accept: "text/html" } })).text;
const policy = async () => (await send(`${scene.service.url}/arbiter/policy`)).body as unknown as Policy;
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("'", "&#39;").replaceAll('"', "&quot;");

describe("GET /arbiter/policy", () => {
  test("The policy is served as JSON and as a page, with its version, first day, rules, and decision tables", async () => {
    const document = await policy();
    expect(document).toMatchObject({
      version: 1,
      effective_date: POLICY_V1.effective_date,
      status: "machine-verifiable deliverables only",
      decision: [{ verdict: "release" }, { verdict: "refund" }, { verdict: "escalate" }],
    });
    expect(document.rules).toHaveLength(11);
    const shown = await page("/arbiter/policy");
    const words = [
      `version ${document.version}`,
      document.effective_date,
      ...document.rules.flatMap(({ number, title, text }) => [`id="rule-${number}"`, title, text]),
      ...document.decision.map(({ when }) => when),
      ...document.categories.flatMap(({ name, conditions, table }) => [
        `id="${name}"`,
        ...conditions.map(({ means }) => means),
        ...table.map(({ observed }) => observed),
      ]),
    ];
    for (const word of words) expect(shown).toContain(word.startsWith("id=") ? word : escaped(word));
  });

  test("The policy is served by version, with 404 for an unknown one and 400 for an invalid one", async () => {
    const url = `${scene.service.url}/arbiter/policy`;
    const [first, second] = [await send(`${url}?version=1`), await send(`${url}?version=2`)];
    expect(first.text).toBe((await send(url)).text);
    expect(first.headers.get("link")).toBe('</arbiter/policy?version=2>; rel="successor-version"');
    expect(second.body).toEqual(JSON.parse(JSON.stringify(POLICY_V2)));
    expect(second.headers.get("link")).toContain('</arbiter/policy?version=1>; rel="predecessor-version"');
    const shown = await page("/arbiter/policy?version=1");
    expect(shown).toContain(`href="${url}?version=1"`);
    expect(shown).toContain('href="/arbiter/policy?version=1&amp;format=json"');
    const refused = async (version: string) => {
      const { status, body } = await send(`${url}?version=${version}`);
      return [status, body.code];
    };
    expect(await refused(String(POLICY_VERSIONS.length + 1))).toEqual([404, "not_found"]);
    for (const version of ["0", "-1", "one", "", "1.0"])
      expect(await refused(version)).toEqual([400, "malformed_request"]);
  });
});

describe("rules of the policy", () => {
  test("Rule 6: the evidence is public, and the deliverable's content is stored nowhere", async () => {
    const secret = "a sentence that only the deliverable has";
    scene.pages.set("/secret", (_request, response) => response.end(secret));
    const payload = { payload_text: secret, expected_sha256: sha256(secret) };
    for (const claim of [
      { category: "http-delivery", conditions: { url: `${scene.shop}/secret`, min_bytes: 1 } },
      { category: "payload-hash", conditions: payload },
      { category: "payload-hash", conditions: { ...payload, payload_text: undefined, payload_b64: btoa(secret) } },
    ]) {
      const { verdict_url, facts, timeline } = await buy(claim);
      expect((await recordOf(verdict_url)).body).toMatchObject({ facts, timeline });
      expect(JSON.stringify(facts)).toContain(sha256(secret));
    }
    const rows = await withClient(scene.service.database.ownerUrl, async (client) => {
      const { rows } = await client.query(
        "SELECT v::text AS row FROM verdict v UNION ALL SELECT p::text FROM payment p",
      );
      return rows.map(({ row }) => String(row));
    });
    expect(rows.length).toBeGreaterThan(5);
    for (const kept of [...rows, ...scene.service.logged]) {
      expect(kept).not.toContain(secret);
      expect(kept).not.toContain(btoa(secret));
    }
  });

  test("Rule 8: a verdict states the observation at its time and never changes", async () => {
    scene.pages.set("/today", (_request, response) => response.end("here"));
    const claim = { category: "http-delivery", conditions: { url: `${scene.shop}/today` } };
    const then = await buy(claim);
    scene.pages.delete("/today");
    expect([then.verdict, (await buy(claim)).verdict]).toEqual(["release", "refund"]);
    expect((await recordOf(then.verdict_url)).body).toMatchObject({ verdict: "release", issued_at: then.issued_at });
    const [{ started_at = "", finished_at = "" } = {}] = then.timeline;
    const times = [started_at, finished_at, then.issued_at];
    expect(times).toEqual(times.toSorted());
    expect(then).not.toHaveProperty("valid_until");
  });
});
