import { describe, expect, test } from "vitest";
import { type CertificateSummary, validUntil } from "../../../api/certificates/certificate.ts";
import { reasonsAgainst } from "../../../api/certificates/observations.ts";
import { verificationRecord } from "../../../api/certificates/verification.ts";
import { SCORE_PRICES } from "../../../api/score/request.ts";
import { PASSING } from "../../support/certificates/samples.ts";

const BASE_URL = "https://trust.test";
const NOW = new Date("2026-11-24T12:00:00.000Z");
const DAY_MS = 86_400_000;

interface Described extends Partial<Pick<CertificateSummary, "id" | "product" | "result" | "reversedAt">> {
  readonly daysAgo: number;
}

const certificate = ({ daysAgo, ...facts }: Described): CertificateSummary => {
  const issuedAt = new Date(NOW.getTime() - daysAgo * DAY_MS);
  return { ...PASSING, issuedAt, validUntil: validUntil(issuedAt), ...facts };
};
const against = (...described: Described[]) => reasonsAgainst(described.map(certificate), BASE_URL, NOW);
const codesAgainst = (...described: Described[]) => against(...described).map(({ code }) => code);

const pass = { result: "pass" } as const;
const fail = { result: "fail", product: "scam" } as const;
const reversed = { reversedAt: new Date("2026-11-23T01:00:00.000Z") };
const MILLISECOND = 1 / DAY_MS;

describe("The reasons against a wallet", () => {
  test.each([
    ["a current PASS", [{ ...pass, daysAgo: 1 }], []],
    ["a PASS in its last millisecond", [{ ...pass, daysAgo: 30 - MILLISECOND }], []],
    ["a PASS of exactly 30 days", [{ ...pass, daysAgo: 30 }], ["pass_expired"]],
    ["no certificate", [], ["never_tested"]],
    ["a reversed PASS", [{ ...pass, ...reversed, daysAgo: 2 }], ["pass_reversed"]],
    [
      "a reversed PASS after a current one",
      [
        { ...pass, ...reversed, daysAgo: 2 },
        { ...pass, daysAgo: 3 },
      ],
      [],
    ],
    [
      "a reversed PASS after an expired one",
      [
        { ...pass, ...reversed, daysAgo: 2 },
        { ...pass, daysAgo: 40 },
      ],
      ["pass_reversed"],
    ],
    [
      "an expired PASS after a reversed one",
      [
        { ...pass, daysAgo: 31 },
        { ...pass, ...reversed, daysAgo: 50 },
      ],
      ["pass_expired"],
    ],
    ["a reversed FAIL alone", [{ ...fail, ...reversed, daysAgo: 1 }], ["no_pass"]],
    [
      "a reversed FAIL and a PASS",
      [
        { ...fail, ...reversed, daysAgo: 1 },
        { ...pass, daysAgo: 2 },
      ],
      [],
    ],
    ["a FAIL of the suite alone", [{ ...fail, product: "suite", daysAgo: 1 }], ["no_pass"]],
    [
      "a FAIL of the suite and a PASS",
      [
        { ...fail, product: "suite", daysAgo: 1 },
        { ...pass, daysAgo: 2 },
      ],
      [],
    ],
    ["an expired FAIL alone", [{ ...fail, daysAgo: 30 }], ["no_pass"]],
    [
      "a FAIL in its last millisecond and a PASS",
      [
        { ...pass, daysAgo: 1 },
        { ...fail, daysAgo: 30 - MILLISECOND },
      ],
      ["current_fail"],
    ],
    [
      "several FAILs and no PASS",
      [
        { ...fail, daysAgo: 1 },
        { ...fail, daysAgo: 2 },
      ],
      ["current_fail", "current_fail", "no_pass"],
    ],
    [
      "a reversed, a current, and an expired FAIL and an expired PASS",
      [
        { ...fail, ...reversed, daysAgo: 1 },
        { ...fail, daysAgo: 2 },
        { ...fail, daysAgo: 31 },
        { ...pass, daysAgo: 32 },
      ],
      ["current_fail", "pass_expired"],
    ],
  ] satisfies [string, Described[], string[]][])("A wallet with %s has the expected reasons", (_, described, codes) => {
    expect(codesAgainst(...described)).toEqual(codes);
    const facts = { wallet: PASSING.wallet, certificates: described.map(certificate), activity: null };
    expect(verificationRecord(facts, { baseUrl: BASE_URL, scorePrice: SCORE_PRICES.one }, NOW).verified).toBe(
      codes.length === 0,
    );
  });

  test("Each current FAIL is described and linked to its certificate, newest first", () => {
    expect(
      against(
        { ...fail, id: "aa", product: "recipient", daysAgo: 2 },
        { ...fail, id: "bb", product: "scam", daysAgo: 4 },
        { ...pass, daysAgo: 5 },
      ),
    ).toEqual([
      {
        code: "current_fail",
        text: "Current FAIL: recipient awareness test, 22 November 2026. It counts until 22 December 2026.",
        product: "recipient",
        issued: "2026-11-22T12:00:00.000Z",
        valid_until: "2026-12-22T12:00:00.000Z",
        cert_url: `${BASE_URL}/cert/aa`,
      },
      expect.objectContaining({ code: "current_fail", product: "scam", cert_url: `${BASE_URL}/cert/bb` }),
    ]);
  });

  test("The reason states when the last PASS expired or was reversed", () => {
    expect(against({ ...pass, product: "basic", daysAgo: 40 })).toMatchObject([
      { text: "No current PASS: the last one expired on 14 November 2026 (basic payment test).", product: "basic" },
    ]);
    expect(against({ ...pass, ...reversed, daysAgo: 1 })).toMatchObject([
      { text: expect.stringMatching(/missing from the chain on 23 November 2026 \(full payment suite\)\.$/) },
    ]);
  });
});
