import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { JSONWebKeySet } from "jose";
import { describe, expect, test } from "vitest";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { type DidDocument, joseAccepts, type SignedDocument, w3cAccepts } from "../../packages/verifier/independent.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { startRecords } from "../../support/sellers/records.ts";
import { FAIL, sampleOrder, UNPUBLISHED } from "../../support/sellers/samples.ts";

const { service, pool, get, held } = await startRecords();
const passed = await held();

test("A PASS is not shown as green while the newest exam of another request of its origin is a FAIL", async () => {
  const origin = "https://two.example";
  const [good, bad] = [`${origin}/good`, `${origin}/bad`];
  const id = await held({ origin, url: good }, { endedAt: new Date(Date.now() - 2_000) });
  expect((await get(`/badge/${id}.svg`, "image/*")).text).toContain("#16704c");
  const failed = await held({ origin, url: bad }, { level: null, endedAt: new Date(Date.now() - 1_000) });
  const badge = (await get(`/badge/${id}.svg`, "image/*")).text;
  expect(badge).toMatch(/x402 seller: not verified · FAIL \d{4}-\d\d-\d\d/);
  expect(badge).not.toContain("#16704c");
  const page = (await get(`/cert/${id}`, "text/html")).text;
  expect(page).not.toContain('class="deed pass"');
  expect(page).toMatch(/the origin is not verified: an exam of another request failed/);
  expect((await get(`/cert/${id}`)).body).toMatchObject({ verdict: "pass", fresh: true });
  expect((await get(`/verify?origin=${origin}`)).body).toMatchObject({
    verified: false,
    reasons: [{ code: "current_fail" }],
  });
  const mended = await held({ origin, url: bad }, { endedAt: new Date() });
  expect((await get(`/badge/${id}.svg`, "image/*")).text).toContain("#16704c");
  expect((await get(`/verify?origin=${origin}`)).body).toMatchObject({
    verified: true,
    certs: [{}, { superseded: true, result: "fail" }, {}],
  });
  expect((await get(`/cert/${failed}`)).body).toMatchObject({ superseded_by: `${service.url}/cert/${mended}` });
  expect((await get(`/cert/${mended}`)).body.earlier).toMatchObject([{ verdict: "fail" }]);
});

describe("A correction", () => {
  const script = fileURLToPath(new URL("../../../scripts/exam-correct.ts", import.meta.url));
  const correct = (...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [script, ...args], {
      env: { ...process.env, DATABASE_URL: service.database.apiUrl },
    }).then(
      ({ stdout }) => ({ code: 0, output: stdout }),
      ({ code, stderr }) => ({ code, output: String(stderr) }),
    );

  test("An operator's correction is shown with the certificate, which is unchanged and no longer counts", async () => {
    const origin = "https://wronged.example";
    await held({ origin }, { endedAt: new Date(Date.now() - 90_000) });
    const id = await held({ origin }, FAIL);
    const { log: _placedWhenTheLogTurns, ...before } = (await get(`/cert/${id}`)).body;
    expect((await get(`/verify?origin=${origin}`)).body).toMatchObject({ verified: false });
    const reason = "The node of the examiner lagged <b>behind</b>.";
    expect(await correct(id, "--reason", reason)).toMatchObject({ code: 0 });
    expect((await get(`/verify?origin=${origin}`)).body).toMatchObject({
      verified: true,
      certs: [{ corrected: true }, {}],
    });
    const after = (await get(`/cert/${id}`)).body;
    expect(after).toMatchObject({
      ...before,
      fresh: false,
      correction: { reason },
      checked_at: expect.anything(),
    });
    const page = (await get(`/cert/${id}`, "text/html")).text;
    expect(page).toContain("The examiner’s error: The node of the examiner lagged &lt;b&gt;behind&lt;/b&gt;.");
    expect((await get(`/badge/${id}.svg`, "image/*")).text).toMatch(/withdrawn \d{4}-\d\d-\d\d/);
    expect(await correct(id, "--reason", "again")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/already been corrected: The node/),
    });
  });

  test("A correction may grant a free exam, immediately or later, and prints its token once", async () => {
    const id = await held({ origin: "https://granted.example" }, FAIL);
    const none = await correct(id, "--free-exam");
    expect(none).toMatchObject({ code: 1, output: expect.stringMatching(/has not been corrected/) });
    const { output } = await correct(id, "--reason", "Our clock was wrong.", "--free-exam");
    const pattern = new RegExp(`POST /exam/${id}/again {"token":"([0-9a-f]{32})"}`);
    const [, token] = pattern.exec(output) ?? [];
    const [, later] = pattern.exec((await correct(id, "--free-exam")).output) ?? [];
    expect([token === undefined, token === later]).toEqual([false, false]);
    const { correction } = (await get(`/cert/${id}`)).body;
    expect(correction).toMatchObject({ free_exam: { cert_url: null } });
    expect(JSON.stringify(correction)).not.toContain(later);
    expect((await get(`/cert/${id}`, "text/html")).text).toContain("may take another exam free of charge");
  });

  test("A correction is refused for an unpublished exam, for a missing exam, and without a reason", async () => {
    const id = await held({ origin: "https://quiet.example" }, UNPUBLISHED);
    expect(await correct(id, "--reason", "x")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/not published/),
    });
    expect(await correct("0".repeat(32), "--reason", "x")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/no exam/),
    });
    expect(await correct(id)).toMatchObject({ code: 1, output: expect.stringMatching(/a reason of 1 to 500/) });
  });
});

describe("An origin's credential", () => {
  test("Our verifier and two others accept the credential, which expires with its first certificate", async () => {
    const { status, text, body } = await get("/credential?origin=https://seller.example");
    expect(status).toBe(200);
    const jwks = await get("/.well-known/jwks.json");
    expect(await joseAccepts(body as unknown as SignedDocument, jwks.body as unknown as JSONWebKeySet)).toBe(true);
    const did = (await get("/.well-known/did.json")).body as unknown as DidDocument;
    expect(await w3cAccepts(body, did)).toBe(true);
    const expected = { keys: await parseKeySet(jwks.text), issuer: service.url };
    expect(await verifyDocument(text, expected)).toMatchObject({ valid: true, freshness: { state: "current" } });
    expect(body).toMatchObject({
      id: `${service.url}/credential?origin=https%3A%2F%2Fseller.example`,
      type: ["VerifiableCredential", "SellerCredential"],
      credentialSubject: { id: "https://seller.example", verified: true, conformance: [{ id: passed }] },
    });
    const subject = body.credentialSubject as { conformance: { valid_until: string }[] };
    expect(body.validUntil).toBe(subject.conformance[0]?.valid_until);
  });

  test("An untested origin's credential has no end date, and a missing or invalid origin gets 400", async () => {
    const { body } = await get("/credential?origin=https://unknown.example");
    expect(body).toMatchObject({ credentialSubject: { tested: false, conformance: [] } });
    expect(body).not.toHaveProperty("validUntil");
    expectProblem(await get("/credential"), 400, "malformed_request");
    expectProblem(await get("/credential?origin=https://a.example/b"), 400, "malformed_request");
  });
});

describe("The board", () => {
  test("The board lists certified sellers page by page, without current FAILs and reversed PASSes", async () => {
    const names = ["one", "two", "three"].map((name) => `https://${name}.board.example`);
    const now = Date.now();
    for (const [place, origin] of names.entries()) await held({ origin }, { endedAt: new Date(now - place * 1_000) });
    const failing = "https://failing.board.example";
    await held({ origin: failing });
    await held({ origin: failing, url: `${failing}/other` }, FAIL);
    const reversed = await held({ origin: "https://reversed.board.example" });
    await pool.query("INSERT INTO seller_exam_reversal (exam) VALUES ($1)", [reversed]);
    const listed: string[] = [];
    let next: string | null = "/board?capability=seller&limit=1";
    while (next !== null) {
      const { status, body } = await get(next.replace(service.url, ""));
      expect([status, body.capability]).toEqual([200, "seller"]);
      listed.push(...(body.sellers as { origin: string }[]).map(({ origin }) => origin));
      next = body.next as string | null;
    }
    expect(listed).toEqual([...new Set(listed)]);
    expect(listed.filter((origin) => origin.endsWith("board.example"))).toEqual(names);
    const page = await get("/board?capability=seller", "text/html");
    expect(page.text).toContain("https://one.board.example");
    expect((await get("/board")).body).toMatchObject({ agents: [] });
  });

  test("Statistics count sellers, and show FAILs only if five sellers have some", async () => {
    const { sellers } = (await get("/stats")).body as { sellers: Record<string, number | null> };
    expect(sellers.certificates).toBeGreaterThan(5);
    expect(sellers.tested).toBeGreaterThanOrEqual(5);
    expect([sellers.passed, sellers.failed]).toEqual([null, null]);
  });
});

test("/payee returns the exams that a payee bought", async () => {
  const payTo = `0x${"7a".repeat(20)}` as const;
  const payment = { ...sampleOrder().payment, payer: payTo };
  const id = await held({ origin: "https://payee.example", payTo, payment });
  const { body } = await get(`/payee/${payTo.toUpperCase().replace("0X", "0x")}`);
  expect(body).toMatchObject({ wallet: payTo, exams: [{ id, result: "pass", level: "full", control: "file" }] });
  const page = await get(`/payee/${payTo}`, "text/html");
  expect(page.headers.get("vary")).toMatch(/accept/i);
  expect(page.text).toContain(`href="${service.url}/cert/${id}"`);
  expect(page.text).toContain('<meta name="robots" content="noindex');
  expect((await get(`/payee/0x${"7b".repeat(20)}`, "text/html")).text).toContain("<p>None.</p>");
  expectProblem(await get("/payee/0x12"), 400, "malformed_request");
});
