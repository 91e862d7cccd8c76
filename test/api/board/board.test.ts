import { assert, constantFrom, date, property, record, string, stringMatching } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type BoardRow,
  boardPage,
  type Count,
  capabilitiesOf,
  encodeCursor,
  parseCursor,
} from "../../../api/board/board.ts";
import { renderBoard } from "../../../api/board/board-page.ts";
import { statistics, statisticsDocument, type Totals } from "../../../api/board/statistics.ts";
import { renderStatistics } from "../../../api/board/statistics-page.ts";
import { CAPABILITY_MENU, PRODUCT_MENU, productOf } from "../../../api/certificates/products.ts";
import { HOSTILE, PASSING, SAMPLE_NOW } from "../../support/certificates/samples.ts";

const baseUrl = "https://trust.test";
const row: BoardRow = { ...PASSING, products: ["basic", "suite"] };
const of = (wallets: number): Count => ({ wallets, certificates: 2 * wallets });

const TOTALS: Totals = {
  wallets: { tested: 19, certified: 12 },
  products: [{ product: "suite", wallets: 19, passed: of(14), failed: of(5) }],
  sellers: { tested: 9, certified: 6, passed: of(7), failed: of(5) },
  payments: [{ network: "eip155:8453", settled: 1_234_567, volume: 1_234_567_890_000n }],
  days: [{ day: "2026-11-20", certificates: 1234, wallets: 9 }],
  earlier: { certificates: 0, wallets: 0 },
};
const publish = (change: Partial<Totals> = {}) => statistics({ ...TOTALS, ...change }, SAMPLE_NOW);
const suiteOf = (wallets: number, passed: number, failed: number) =>
  statisticsDocument(
    publish({ products: [{ product: "suite", wallets, passed: of(passed), failed: of(failed) }] }),
  ).products.find(({ product }) => product === "suite");

describe("cursor of the board", () => {
  const id = stringMatching(/^(?:[0-9a-f]{16}){1,2}$/);
  const instant = date({ min: new Date(0), max: new Date("2200-01-01"), noInvalidDate: true });
  const place = record({ id, issuedAt: instant });
  const filter = constantFrom("any", "seller", ...CAPABILITY_MENU);

  test("A cursor parses back to its walk, and only with its own filter", () => {
    assert(
      property(record({ top: place, after: place }), filter, filter, (walk, own, other) => {
        const cursor = encodeCursor(walk, own);
        expect(cursor).toMatch(/^[\w-]+$/);
        expect(parseCursor(cursor, other)).toEqual(own === other ? walk : null);
      }),
    );
  });

  test("A cursor that the service never issued is rejected", () => {
    assert(property(string(), (text) => parseCursor(text, "any") === null));
    const given = encodeCursor({ top: row, after: row }, "any");
    for (const altered of [`${given}A`, given.slice(1), `${given}=`, ` ${given}`, `${given}\n`])
      expect(parseCursor(altered, "any")).toBeNull();
  });
});

describe("page of the board", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, index) => ({ ...row, id: `id${index}` }));
  const asked = { capability: null, limit: 3 };

  test.each([
    [0, 0, null],
    [3, 3, null],
    [4, 3, "id2"],
  ])("A page with limit 3 of %d matches has %d rows, and its cursor follows %s", (found, shown, after) => {
    const page = boardPage(asked, null, rows(found));
    expect([page.rows.length, page.next?.after.id ?? null]).toEqual([shown, after]);
  });

  test("Every page keeps the top of the walk that the first page set", () => {
    const first = boardPage(asked, null, rows(4)).next;
    expect(first?.top.id).toBe("id0");
    expect(boardPage(asked, first, rows(4).toReversed()).next?.top.id).toBe("id0");
  });

  test("The HTML page escapes its content", () => {
    const page = boardPage(asked, null, [{ ...row, level: HOSTILE, products: [HOSTILE] }]);
    const shown = renderBoard(page, { baseUrl, first: true, nextUrl: HOSTILE, jsonUrl: HOSTILE });
    expect(shown).not.toContain("<script");
    expect(shown).not.toContain("<img src=x");
    expect(shown).toContain("&lt;img src=x onerror=");
  });
});

test("Every product on sale has a capability, and an unknown product has none", () => {
  expect(CAPABILITY_MENU.map(productOf)).toEqual(PRODUCT_MENU);
  expect(capabilitiesOf(PRODUCT_MENU)).toEqual(CAPABILITY_MENU);
  expect(capabilitiesOf(["unheard-of"])).toEqual([]);
});

describe("anonymity of the statistics", () => {
  test.each([
    // Wallets, how many passed and failed → certificates, passed, failed, share.
    [0, 0, 0, 0, 0, 0, null],
    [1, 1, 0, null, null, null, null],
    [4, 4, 0, null, null, null, null],
    [4, 0, 4, null, null, null, null],
    [5, 5, 0, 10, 10, 0, 0],
    [5, 0, 5, 10, 0, 10, 1],
    [9, 5, 4, 18, null, null, null],
    [9, 4, 5, 18, null, null, null],
    [10, 5, 5, 20, 10, 10, 0.5],
    [20, 19, 1, 40, null, null, null],
  ])(
    "With %d wallets, %d passed and %d failed, the statistics show %s certificates, %s, %s, and share %s",
    (...[wallets, p, f, ...shown]) => {
      const suite = suiteOf(wallets, p, f);
      expect([suite?.certificates, suite?.passed, suite?.failed, suite?.failure_share]).toEqual(shown);
    },
  );

  test.each([
    [1, null],
    [4, null],
    [5, 7],
  ])("A day with certificates for %d wallets shows %s", (wallets, shown) => {
    const { days } = publish({ days: [{ day: "2026-11-24", certificates: 7, wallets }] });
    expect(days.at(-1)).toEqual({ day: "2026-11-24", certificates: shown });
    expect(days[0]?.certificates).toBe(shown && 0);
  });

  test("A day is withheld if the certificates before the first day belong to few wallets", () => {
    const days = [{ day: "2026-11-24", certificates: 7, wallets: 6 }];
    const published = publish({ days, earlier: { certificates: 1, wallets: 1 } }).days;
    expect(published.slice(-2).map(({ certificates }) => certificates)).toEqual([null, 7]);
  });

  test("Totals are shown from the first certificate and payment on", () => {
    const one = publish({
      wallets: { tested: 1, certified: 1 },
      products: [{ product: "suite", wallets: 1, passed: of(1), failed: of(0) }],
      payments: [{ network: "eip155:8453", settled: 1, volume: 750_000n }],
      days: [{ day: "2026-11-24", certificates: 1, wallets: 1 }],
    });
    const { wallets, certificates, products, payments, days } = statisticsDocument(one);
    expect({ wallets, certificates }).toEqual({ wallets: { tested: 1, certified_now: 1 }, certificates: 2 });
    expect(payments[0]).toMatchObject({ settled: 1, volume_atomic: "750000", volume: "0.75" });
    for (const part of [...products, ...days]) expect(part.certificates).toBeNull();
    const [totals = ""] = /id="totals".*?<\/section>/s.exec(renderStatistics(one, baseUrl)) ?? [];
    for (const text of ["Certificates ever issued</dt><dd>2<", "Payments on Base</dt><dd>1<", "0.75 USDC"])
      expect(totals).toContain(text);
    expect(totals).not.toContain("withheld");
  });

  test("The document and the page name no wallet, transaction, or certificate", () => {
    for (const text of [JSON.stringify(statisticsDocument(publish())), renderStatistics(publish(), baseUrl)])
      expect(text).not.toMatch(/0x[0-9a-f]|\/cert\/|wallet=/i);
  });
});

test.each([
  [5, 5, 10, 10],
  [5, 0, 10, 0],
  [5, 4, null, null],
  [4, 5, null, null],
  [0, 0, 0, 0],
])("Exams that %d sellers passed and %d failed are shown as %s and %s, and their total always", (...counts) => {
  const [passed, failed, ...shown] = counts;
  const { sellers } = statisticsDocument(
    publish({ sellers: { tested: passed, certified: 0, passed: of(passed), failed: of(failed) } }),
  );
  expect([sellers.passed, sellers.failed]).toEqual(shown);
  expect(sellers.certificates).toBe(2 * (passed + failed));
});

describe("GET /stats", () => {
  test("The JSON has snake_case keys, amounts as strings, and 30 days", () => {
    const { days, products, ...rest } = statisticsDocument(publish());
    expect(rest).toMatchObject({
      sellers: { tested: 9, certified_now: 6, certificates: 24, passed: 14, failed: 10 },
      wallets: { tested: 19, certified_now: 12 },
      certificates: 38,
      payments: [
        { network: "eip155:8453", settled: 1_234_567, volume_atomic: "1234567890000", volume: "1234567.89" },
        { network: "eip155:84532", settled: 0, volume_atomic: "0", volume: "0.00" },
      ],
    });
    expect(products.map(({ product }) => product)).toEqual(PRODUCT_MENU);
    expect(days.map(({ day }) => day)).toEqual([...new Set(days.map(({ day }) => day))].toSorted());
    expect([days.length, days[0]?.day, days.at(-1)?.day]).toEqual([30, "2026-10-26", "2026-11-24"]);
    expect(days.at(-5)).toEqual({ day: "2026-11-20", certificates: 1234 });
  });

  test("The page escapes its content", () => {
    const products = [{ product: HOSTILE, wallets: 9, passed: of(9), failed: of(0) }];
    expect(renderStatistics(publish({ products }), baseUrl)).not.toContain("<img src=x");
  });
});
