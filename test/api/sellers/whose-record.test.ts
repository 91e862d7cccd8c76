import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import type { JSONWebKeySet } from "jose";
import { describe, expect, test } from "vitest";
import { earlierOf, judgeExams, verdictOf } from "../../../api/sellers/published/judge-exams.ts";
import { payeeExams, sellerVerification } from "../../../api/sellers/published/verification.ts";
import { type ExamOrder, isVoid, type PublishedExam } from "../../../api/sellers/record.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { type DidDocument, joseAccepts, type SignedDocument, w3cAccepts } from "../../packages/verifier/independent.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { startRecords } from "../../support/sellers/records.ts";
import { FAIL, sampleOrder, samplePublished, UNPUBLISHED } from "../../support/sellers/samples.ts";

const { service, pool, get, held } = await startRecords();

describe("A tenant of a shared host", () => {
  const origin = "https://shared.example";
  const consent = (prefix: string) => ({ consent: { ...sampleOrder().consent, prefix } });
  const verified = async (prefix?: string) =>
    (await get(`/verify?origin=${origin}${prefix === undefined ? "" : `&path_prefix=${prefix}`}`)).body;
  const board = async () =>
    ((await get("/board?capability=seller&limit=100")).body.sellers as { origin: string; path_prefix: string }[])
      .filter((seller) => seller.origin === origin)
      .map(({ path_prefix }) => path_prefix);

  test("A tenant has a separate record that does not affect the origin or its neighbors", async () => {
    const passing = await held({ origin, url: `${origin}/~ada/haiku`, ...consent("/~ada/") });
    const failing = await held({ origin, url: `${origin}/~bob/haiku`, ...consent("/~bob/") }, FAIL);
    expect(await verified()).toMatchObject({ path_prefix: "/", tested: false, verified: false, certs: [] });
    expect(await verified("/~ada")).toMatchObject({ path_prefix: "/~ada/", verified: true, certs: [{ id: passing }] });
    expect(await verified("/~bob/")).toMatchObject({ tested: true, verified: false, certs: [{ id: failing }] });
    expect(await verified("/~bo/")).toMatchObject({ tested: false });
    expect(await board()).toEqual(["/~ada/"]);
    const { body } = await get(`/credential?origin=${origin}&path_prefix=/~ada/`);
    const subject = { id: `${origin}/~ada/`, path_prefix: "/~ada/", verified: true };
    expect(body.credentialSubject).toMatchObject(subject);
    expect(body.credentialSubject).not.toHaveProperty("origin");
    expect((await get(`/cert/${passing}`)).body).toMatchObject({
      ...{ path_prefix: "/~ada/", fresh: true },
      verify_url: `${service.url}/verify?origin=${encodeURIComponent(origin)}&path_prefix=%2F~ada%2F`,
    });
    expect((await get(`/cert/${passing}`, "text/html")).text).toContain(`Passed: full: ${origin}/~ada/`);
  });

  test("A tenant cannot escape a FAIL of the whole origin by naming a path", async () => {
    const url = `${origin}/~ada/sonnet`;
    await held({ origin, url, ...consent("/") }, FAIL);
    expect(await verified()).toMatchObject({ verified: false, reasons: [{ code: "current_fail" }, {}] });
    expect(await verified("/~ada/")).toMatchObject({ verified: false, reasons: [{ code: "current_fail" }] });
    expect(await verified("/~eve/")).toMatchObject({ tested: false });
    expect(await board()).toEqual([]);
    await held({ origin, url, ...consent("/~ada/") }, { endedAt: new Date() });
    expect(await verified("/~ada/")).toMatchObject({ verified: true });
    expect(await verified()).toMatchObject({ verified: false, reasons: [{ code: "current_fail" }, {}] });
    expect(await board()).toEqual(["/~ada/"]);
  });
});

test("A payee's record omits exams that others bought from sellers who quote its wallet", async () => {
  const [mine, quoted] = [`0x${"c1".repeat(20)}`, `0x${"c2".repeat(20)}`] as const;
  const { payment } = sampleOrder();
  const origin = "https://quoting.example";
  await held({ origin, payTo: quoted, payment: { ...payment, payer: mine } }, FAIL);
  await held({ origin: "https://quoting2.example", payTo: quoted });
  for (const wallet of [mine, quoted]) expect((await get(`/payee/${wallet}`)).body).toMatchObject({ exams: [] });
  const own = { origin: "https://own.example", payTo: mine };
  await held({ ...own, payment: { ...payment, payer: mine } });
  // A shop may forward its customer's payment to buy an exam that must fail.
  const forwarded = { origin: "https://scam.example", payTo: mine };
  await held({ ...forwarded, payment: { ...sampleOrder().payment, payer: mine } }, FAIL);
  expect((await get(`/payee/${mine}`)).body).toMatchObject({ exams: [{ result: "pass", origin: own.origin }] });
});

test("The query and body of a buyer's order are in no record, page, or evidence", async () => {
  const origin = "https://words.example";
  const words = { url: `${origin}/haiku?q=attackers-words`, body: "attackers-words", method: "POST" } as const;
  const id = await held({ origin, ...words, other: `${origin}/sonnet?attackers-words` });
  const paths = [`/cert/${id}`, `/exam/${id}`, `/cert/${id}/evidence`, `/verify?origin=${origin}`];
  for (const path of paths) expect((await get(path)).text, path).not.toContain("attackers-words");
  expect((await get(`/cert/${id}`, "text/html")).text).not.toContain("attackers-words");
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  expect((await get(`/cert/${id}`)).body.request).toEqual({
    ...{ method: "POST", url: `${origin}/haiku`, content_type: "application/json", other: `${origin}/sonnet` },
    query_sha256: sha256("q=attackers-words"),
    body_sha256: sha256("attackers-words"),
  });
});

describe("Verification of an origin", () => {
  const DAY_MS = 86_400_000;
  const NOW = new Date("2026-11-24T12:00:00.000Z");
  const origin = "https://seller.example";
  const site = { origin, prefix: "/" } as const;
  const WALLET = `0x${"5e".repeat(20)}` as const;

  interface Plan {
    readonly daysAgo: number;
    readonly level?: "full" | "safe" | null;
    readonly order?: Partial<ExamOrder>;
    readonly corrected?: boolean;
    readonly reversed?: boolean;
  }

  const exam = ({ daysAgo, level = "full", order = {}, corrected = false, reversed = false }: Plan): PublishedExam =>
    samplePublished(
      sampleOrder(order),
      { endedAt: new Date(NOW.getTime() - daysAgo * DAY_MS), level },
      {
        correction: corrected ? { reason: "The examiner's clock was wrong.", at: NOW, free: null } : null,
        reversedAt: reversed ? NOW : null,
      },
    );

  const POST = { method: "POST", body: '{"about":"rain"}' } as const;
  const record = (...plans: readonly Plan[]) =>
    sellerVerification({ site, exams: plans.map(exam) }, "https://trust.test", NOW);

  describe("The newest exam of each request", () => {
    test.each<[string, readonly Plan[], boolean, readonly string[]]>([
      ["never examined", [], false, ["never_tested"]],
      ["one PASS", [{ daysAgo: 1 }], true, []],
      ["a PASS of level safe", [{ daysAgo: 1, level: "safe" }], true, []],
      ["one FAIL", [{ daysAgo: 1, ...FAIL }], false, ["current_fail", "no_pass"]],
      ["a FAIL followed by a PASS", [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL }], true, []],
      [
        "a PASS followed by a FAIL",
        [{ daysAgo: 1, ...FAIL }, { daysAgo: 2 }],
        false,
        ["current_fail", "pass_superseded"],
      ],
      [
        "a FAIL and a PASS of another request",
        [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL, order: { url: `${origin}/sonnet` } }],
        false,
        ["current_fail"],
      ],
      [
        "a FAIL and a PASS with another method",
        [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL, order: POST }],
        false,
        ["current_fail"],
      ],
      [
        "a FAIL and a PASS with another body",
        [
          { daysAgo: 1, order: { ...POST, body: "{}" } },
          { daysAgo: 2, ...FAIL, order: POST },
        ],
        false,
        ["current_fail"],
      ],
      ["an expired FAIL", [{ daysAgo: 1 }, { daysAgo: 31, ...FAIL, order: POST }], true, []],
      ["a PASS of 29 days", [{ daysAgo: 29.99 }], true, []],
      ["a PASS of 30 days", [{ daysAgo: 30 }], false, ["pass_expired"]],
      ["a withdrawn FAIL", [{ daysAgo: 1, ...FAIL, corrected: true }, { daysAgo: 2 }], true, []],
      ["a withdrawn PASS", [{ daysAgo: 1, corrected: true }], false, ["pass_corrected"]],
      ["a reversed FAIL", [{ daysAgo: 1, ...FAIL, reversed: true }, { daysAgo: 2 }], true, []],
      ["a reversed PASS", [{ daysAgo: 1, reversed: true }], false, ["pass_reversed"]],
      [
        "a withdrawn PASS after an older FAIL",
        [
          { daysAgo: 1, corrected: true },
          { daysAgo: 2, ...FAIL },
        ],
        false,
        ["current_fail", "pass_corrected"],
      ],
    ])("The record of an origin has the expected reasons: %s", (...[, plans, verified, codes]) => {
      const { reasons, ...rest } = record(...plans);
      expect(reasons.map(({ code }) => code)).toEqual(codes);
      expect(rest).toMatchObject({ verified, tested: plans.length > 0 });
    });

    test("An origin with any exams is verified only if no request's newest exam is a fresh FAIL", () => {
      const plan = fc.record({
        daysAgo: fc.integer({ min: 0, max: 40 }),
        level: fc.constantFrom("full" as const, "safe" as const, null),
        order: fc.constantFrom({}, POST, { url: `${origin}/sonnet` }),
        corrected: fc.boolean(),
        reversed: fc.boolean(),
      });
      fc.assert(
        fc.property(fc.array(plan, { maxLength: 12 }), (plans) => {
          const exams = plans.toSorted((a, b) => a.daysAgo - b.daysAgo).map(exam);
          const all = judgeExams(exams, NOW);
          const counting = all.filter(({ state }) => state === "counts").map((one) => one.exam);
          const { verified } = sellerVerification({ site, exams }, "https://trust.test", NOW);
          expect(verified).toBe(counting.length > 0 && counting.every((one) => verdictOf(one) === "pass"));
          for (const one of counting) {
            const newer = exams.slice(0, exams.indexOf(one));
            expect(newer.some((other) => !isVoid(other) && earlierOf(other, [one]).length > 0)).toBe(false);
            expect(NOW.getTime() - one.result.endedAt.getTime()).toBeLessThan(30 * DAY_MS);
          }
        }),
      );
    });
  });

  test.each<[string, readonly Plan[], number]>([
    ["counts", [{ daysAgo: 1 }], 1],
    ["has expired", [{ daysAgo: 30 }], 0],
    ["is withdrawn", [{ daysAgo: 1, corrected: true }], 0],
    ["is reversed", [{ daysAgo: 1, reversed: true }], 0],
    ["is superseded", [{ daysAgo: 1, ...FAIL }, { daysAgo: 2 }], 0],
  ])("A payee's record lists a PASS only while it counts: one that %s", (_, plans, listed) => {
    const { exams } = payeeExams(WALLET, plans.map(exam), { baseUrl: "https://trust.test", now: NOW });
    expect(exams).toHaveLength(listed);
  });
});

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

  test("Statistics count sellers and their exams", async () => {
    for (let place = 0; place < 5; place++) {
      await held({ origin: `https://passed-${place}.example` });
      await held({ origin: `https://failed-${place}.example` }, FAIL);
    }
    const { sellers } = (await get("/stats")).body as { sellers: Record<string, number> };
    const { tested = 0, passed = 0, failed = 0 } = sellers;
    expect(tested).toBeGreaterThanOrEqual(10);
    expect(Math.min(passed, failed)).toBeGreaterThanOrEqual(5);
    expect(sellers.certificates).toBe(passed + failed);
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
