import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { earlierOf, judgeExams, verdictOf } from "../../../api/sellers/published/judge-exams.ts";
import { payeeExams, sellerVerification } from "../../../api/sellers/published/verification.ts";
import { type ExamOrder, isVoid, type PublishedExam } from "../../../api/sellers/record.ts";
import { startRecords } from "../../support/sellers/records.ts";
import { FAIL, sampleOrder, samplePublished } from "../../support/sellers/samples.ts";

const { service, get, held } = await startRecords();

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
