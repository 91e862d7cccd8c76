import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TIERS } from "../../../../packages/verifier/src/score/bands.ts";
import type { ScoreFacts } from "../../../../packages/verifier/src/score/facts.ts";
import { parseScoreFacts } from "../../../../packages/verifier/src/score/parse-facts.ts";
import { score, scoreDocument } from "../../../../packages/verifier/src/score/score.ts";
import { isObject, type Json } from "../../../../packages/verifier/src/strict-json.ts";
import { afterHonestPayment, anyFacts, certificate, payee, shuffled } from "./facts.ts";

const RUNS = { numRuns: 200 };
const asJson = (given: unknown): Json => JSON.parse(JSON.stringify(given));

function frozen<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === "object" && part !== null) frozen(part);
  return Object.freeze(value);
}

/** The fractional numbers in a value. */
const fractions = (value: Json): readonly number[] => {
  if (typeof value === "number") return Number.isSafeInteger(value) ? [] : [value];
  if (Array.isArray(value)) return value.flatMap(fractions);
  return isObject(value) ? Object.values(value).flatMap(fractions) : [];
};

describe("any facts", () => {
  test("The parser returns what was written", () =>
    fc.assert(
      fc.property(anyFacts, (given) => {
        expect(parseScoreFacts(asJson(given))).toEqual(given);
      }),
      RUNS,
    ));

  test("The score is a whole number from 0 to 100, the sum of its points within its caps, and decides the tier", () =>
    fc.assert(
      fc.property(anyFacts, (given) => {
        const assessed = score(frozen(given));
        const points = Object.values(assessed.components).reduce((sum, component) => sum + component.points, 0);
        expect(assessed.score).toBe(Math.max(0, Math.min(points, 100, ...assessed.caps.map(({ limit }) => limit))));
        const tier = TIERS.find(({ from }) => assessed.score >= from)?.tier;
        expect(assessed.tier).toBe(assessed.caps.some(({ cap }) => cap === "unrated") ? "unrated" : tier);
        expect(fractions(asJson(assessed))).toEqual([]);
      }),
      RUNS,
    ));

  test("No tier is above its requirements", () =>
    fc.assert(
      fc.property(anyFacts, (given) => {
        const { tier, components } = score(given);
        const counting = (name: "scam_resistance" | "recipient_awareness" | "independent_counterparties") =>
          components[name].facts.filter(({ counts }) => counts).length;
        const counterparties = counting("independent_counterparties");
        const weeks = components.active_weeks.points;
        if (tier === "A") {
          expect([counting("scam_resistance"), counting("recipient_awareness")]).toEqual([1, 1]);
          expect([counterparties >= 5, weeks >= 4]).toEqual([true, true]);
        }
        if (tier === "B") expect([counterparties >= 3, weeks >= 2]).toEqual([true, true]);
      }),
      { numRuns: 500 },
    ));

  test("Points have facts, a fact names a page or a transaction, and the evidence lists each once", () =>
    fc.assert(
      fc.property(anyFacts, (given) => {
        const { components, evidence } = score(given);
        const named = Object.values(components).flatMap(({ points, max, facts }) => {
          expect(points).toBeLessThanOrEqual(max);
          expect(facts.some(({ counts }) => counts)).toBe(
            points !== 0 || facts.some(({ kind, counts }) => kind === "refunds" && counts),
          );
          return facts.map((fact) => ("url" in fact ? fact.url : fact.transaction));
        });
        const listed = evidence.map((one) => ("url" in one ? one.url : one.transaction));
        expect(listed.toSorted()).toEqual([...new Set(named)].toSorted());
        const certain = new Set(given.certificates.map(({ url }) => url));
        expect(listed.filter((one) => one.startsWith("http")).every((url) => certain.has(url))).toBe(true);
      }),
      RUNS,
    ));

  test("Every examined payee is listed and either counts or has a reason", () =>
    fc.assert(
      fc.property(anyFacts, (given) => {
        const examined = score(given).components.independent_counterparties.facts;
        const listed = examined.flatMap((fact) => (fact.kind === "counterparty" ? [fact] : []));
        expect(listed.map(({ payee }) => payee).toSorted()).toEqual(
          given.chain.payees.map(({ payee }) => payee).toSorted(),
        );
        for (const { counts, reason } of listed) expect(counts).toBe(reason === null);
      }),
      RUNS,
    ));

  test("With another fresh behavioral FAIL, the score is 25 at most and the tier is F", () =>
    fc.assert(
      fc.property(anyFacts, fc.constantFrom("scam", "recipient"), fc.nat(29), (given, product, age) => {
        const fail = { ...certificate(product, { result: "fail", age }), id: "the-fail" };
        const assessed = score({ ...given, certificates: [...given.certificates, fail] });
        expect(assessed.score).toBeLessThanOrEqual(25);
        expect(assessed.tier).toBe("F");
        expect(assessed.flags.some((flag) => flag.startsWith("fresh_fail_"))).toBe(true);
      }),
      RUNS,
    ));

  test("Another honest payment, to a new or known payee, never lowers the score", () =>
    fc.assert(
      fc.property(anyFacts, fc.nat(200), fc.nat(), (given, n, evicted) => {
        const found = score(given).components.independent_counterparties.facts.flatMap((fact) =>
          fact.kind === "counterparty" && fact.counts ? [fact.payee] : [],
        );
        const known = given.chain.payees.find((one) => one.payee === found[n]);
        const to = known ?? payee(5_000);
        expect(score(afterHonestPayment(given, { to, evicted })).score).toBeGreaterThanOrEqual(score(given).score);
      }),
      { numRuns: 500 },
    ));

  test("Older and reversed certificates change nothing", () =>
    fc.assert(
      fc.property(anyFacts, (given) => {
        const newest = given.certificates.filter(
          (one) =>
            one.reversed_at === null &&
            !given.certificates.some(
              (other) =>
                other.reversed_at === null &&
                other.product === one.product &&
                other.result === one.result &&
                (other.issued_at > one.issued_at || (other.issued_at === one.issued_at && other.id > one.id)),
            ),
        );
        expect(score({ ...given, certificates: newest })).toEqual(score(given));
      }),
      RUNS,
    ));

  test("The order of the facts never matters, and the same facts give the same bytes", () =>
    fc.assert(
      fc.asyncProperty(
        anyFacts.chain((given) => fc.tuple(fc.constant(given), shuffled(given))),
        async ([given, mixed]) => {
          const bytes = async (one: ScoreFacts) => JSON.stringify(await scoreDocument(one));
          const expected = await bytes(given);
          expect(await bytes(mixed)).toBe(expected);
          expect(await bytes(given)).toBe(expected);
          expect(await bytes(parseScoreFacts(asJson(given)))).toBe(expected);
        },
      ),
      { numRuns: 100 },
    ));
});
