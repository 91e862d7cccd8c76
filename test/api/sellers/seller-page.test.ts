import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { namedTransactions } from "../../../api/sellers/published/evidence.ts";
import type { KeptExchange } from "../../../api/sellers/published/schemas.ts";
import { renderSellerPage } from "../../../api/sellers/published/seller-page.ts";
import { sellerVerification } from "../../../api/sellers/published/verification.ts";
import { renderSellerVerification } from "../../../api/sellers/published/verification-page.ts";
import type { PublishedExam } from "../../../api/sellers/record.ts";
import { sampleOrder, samplePublished } from "../../support/sellers/samples.ts";

const NOW = new Date("2026-11-24T12:00:00.000Z");
const baseUrl = "https://trust.test";
const HOSTILE = `"><script>alert(1)</script><img src=x onerror=alert(1)>'\u202e\u2066\u0000\ud800`;
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}]/u;

const exchange = (number: number, words: string): KeptExchange => ({
  number,
  request: {
    method: "GET",
    url: `https://seller.example/haiku?${words}`,
    querySha256: "0".repeat(64),
    headers: { [words]: words },
    bodySha256: "0".repeat(64),
  },
  answer: {
    status: 200,
    headers: { [`x-${words}`]: words, "payment-response": words },
    body: { bytes: words.length, sha256: "0".repeat(64), text: words, base64: null, isWhole: true },
  },
  failure: null,
});

const hostileExam = (words: string): PublishedExam =>
  samplePublished(
    sampleOrder({ url: `https://seller.example/${words}`, method: "GET" }),
    {
      endedAt: NOW,
      note: words,
      checks: [
        {
          check: "caching",
          outcome: "fail",
          reason: words,
          findings: [{ code: "caching.not_stored", statement: words, holds: false, exchanges: [1, 2] }],
        },
      ],
    },
    { correction: { reason: words, at: NOW, free: null } },
  );

const render = (exam: PublishedExam, exchanges: readonly KeptExchange[]): string =>
  renderSellerPage(exam, {
    placed: { exam, state: "counts", supersededBy: null, earlier: [exam] },
    transactions: namedTransactions(exchanges),
    places: [],
    baseUrl,
    exchanges,
    now: NOW,
  });

/** Returns the sorted names of a page's elements. */
const elements = (page: string) =>
  page
    .match(/<[a-z][a-z0-9]*/g)
    ?.toSorted()
    .join(" ");

describe("A seller's text on a page", () => {
  test("Any text leaves the page's elements unchanged and shows no invisible characters", () => {
    const plain = elements(render(hostileExam("words"), [exchange(1, "words"), exchange(2, "words")]));
    const words = fc.oneof(
      fc.constant(HOSTILE),
      fc.string({ unit: "binary", minLength: 1 }),
      fc.constant("</code></pre></details>"),
    );
    fc.assert(
      fc.property(words, (text) => {
        const page = render(hostileExam(text), [exchange(1, text), exchange(2, text)]);
        expect(elements(page)).toBe(plain);
        expect(page).not.toMatch(UNSEEN);
      }),
      { numRuns: 60 },
    );
  });

  test("A seller's text is also escaped in the origin's record", () => {
    const exam = { ...hostileExam(HOSTILE), correction: null };
    const page = renderSellerVerification(
      sellerVerification({ site: { origin: "https://seller.example", prefix: "/" }, exams: [exam] }, baseUrl, NOW),
      baseUrl,
    );
    expect(page).not.toContain("<script>alert");
    expect(page).not.toMatch(UNSEEN);
  });

  test("40 exchanges of a megabyte each make a page below one megabyte", () => {
    const words = "<\u202e".repeat(262_144);
    const page = render(
      hostileExam(words),
      Array.from({ length: 40 }, (_, place) => exchange(place + 1, words)),
    );
    expect(page.length).toBeLessThan(1_000_000);
    expect(page).toContain('id="exchange-40"');
  });
});

describe("Transactions named in answers", () => {
  const naming = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
  const TX = `0x${"AB".repeat(32)}`;

  test("Each named transaction is listed once with its exchanges", () => {
    const answered = {
      ...exchange(1, "x"),
      answer: { ...answerOf(1), headers: { "payment-response": naming({ transaction: TX }) } },
    };
    expect(namedTransactions([answered, { ...answered, number: 7 }])).toEqual([
      { transaction: TX.toLowerCase(), exchanges: [1, 7] },
    ]);
  });

  test.each([
    "",
    "no base64!",
    naming(null),
    naming("x"),
    naming({ transaction: 1 }),
    naming({ transaction: `${TX}"` }),
  ])("The header %j names no transaction", (header) => {
    const answered = { ...exchange(1, "x"), answer: { ...answerOf(1), headers: { "payment-response": header } } };
    expect(namedTransactions([answered])).toEqual([]);
  });

  test("At most ten named transactions are listed", () => {
    const many = Array.from({ length: 40 }, (_, place) => ({
      ...exchange(place + 1, "x"),
      answer: {
        ...answerOf(1),
        headers: { "payment-response": naming({ transaction: `0x${String(place).padStart(64, "0")}` }) },
      },
    }));
    expect(namedTransactions(many)).toHaveLength(10);
  });

  const answerOf = (number: number) => exchange(number, "x").answer as NonNullable<KeptExchange["answer"]>;
});
