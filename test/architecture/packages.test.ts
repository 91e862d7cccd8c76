import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { POLICY_VERSIONS } from "../../api/arbiter/policy/index.ts";
import { PRICES } from "../../api/arbiter/products.ts";
import { VALID_FOR_DAYS } from "../../api/certificates/certificate.ts";
import { basic } from "../../api/certificates/kinds/basic.ts";
import { suite } from "../../api/certificates/kinds/suite.ts";
import { perCapability, SINGLE_PRODUCTS } from "../../api/certificates/products.ts";
import { FEE_TEXT, TIMEOUT_SECONDS, TIMEOUT_TEXT } from "../../api/escrow/payment.ts";
import { ACTIVITY_DAYS } from "../../api/platform/index/activity.ts";
import { formatUsd } from "../../api/platform/money.ts";
import { MAX_WALLETS, SCORE_PRICES } from "../../api/score/request.ts";
import { passes } from "../../packages/action/src/verify.ts";
import { LONGEST_AUTHORIZATION_SECONDS } from "../../packages/escrow/src/acceptable.ts";
import { LIMITS } from "../../packages/mcp/src/limits.ts";
import { DEFAULT_BUDGET_USD } from "../../packages/mcp/src/settings.ts";
import { unmet } from "../../packages/verifier/src/requirement.ts";
import { CATEGORIES } from "../../packages/verifier/src/vocabulary.ts";
import { type RouteLine, readRoutes } from "../../scripts/docs-tables.ts";
import { PACKAGE_TEXTS, packageText } from "../../scripts/package-texts.ts";

const read = (path: string): string => readFileSync(new URL(`../../packages/${path}`, import.meta.url), "utf8");

let routes: readonly RouteLine[];

beforeAll(async () => {
  routes = await readRoutes();
});

test.each(PACKAGE_TEXTS)("packages/%s has the names and prices that `npm run docs` writes", (name) => {
  const text = read(name);
  expect(packageText(name, text, routes)).toBe(text);
});

test("the arbiter's categories are those of its policy", () => {
  const named = POLICY_VERSIONS.flatMap(({ categories }) => categories.map(({ name }) => name));
  expect(CATEGORIES).toEqual([...new Set(named)]);
});

test("the action requires of a capability what the verifier requires", () => {
  const until = new Date(Date.now() + 1_000).toISOString();
  for (const result of ["pass", "fail", null] as const)
    for (const fresh of [true, false]) {
      const record = { capabilities: perCapability(() => ({ result, fresh, valid_until: until })) };
      const isUnmet = unmet(record, ["can_pay"], new Date()).length > 0;
      expect(passes(record, "can_pay"), `${result}, ${fresh}`).toBe(!isUnmet);
    }
});

test("the limits in the MCP tools are the service's", () => {
  expect(LIMITS).toEqual({
    batchWallets: MAX_WALLETS,
    certificateDays: VALID_FOR_DAYS,
    activityDays: ACTIVITY_DAYS,
    escrowTimeoutMinutes: TIMEOUT_SECONDS / 60,
  });
});

/** Prices, and numbers with a unit, as a text prints them. */
const figuresIn = (text: string): readonly string[] => [
  ...new Set(text.match(/\b\d+\.\d\d\b(?!\.\d)|\b\d+(%| (days|hours|minutes|wallets)\b)/g)),
];

describe("the printed figures of the packages", () => {
  test("in the MCP tools' README", () => {
    const text = read("mcp/README.md");
    expect(text).toContain(`up to ${MAX_WALLETS} of them`);
    expect(text).toContain(`default \`${DEFAULT_BUDGET_USD}\``);
    const budgets = [DEFAULT_BUDGET_USD, "1.00"];
    const known = [...Object.values(SCORE_PRICES), basic.price, suite.price, ...Object.values(PRICES)].map(formatUsd);
    expect(figuresIn(text).filter((figure) => ![...known, ...budgets].includes(figure))).toEqual([]);
  });

  test("in the action's description and README", () => {
    expect(figuresIn(read("action/action.yml"))).toEqual([formatUsd(basic.price), "0.00"]);
    expect(figuresIn(read("action/README.md"))).toEqual([]);
    expect(read("action/README.md")).toContain(`pays for ${SINGLE_PRODUCTS.map((one) => `\`${one}\``).join(" or ")}`);
  });

  test("in the escrow's README", () => {
    const text = read("escrow/README.md");
    expect(text).toContain(`less ${FEE_TEXT}`);
    expect(text).toMatch(new RegExp(`the\\sfee\\sis\\snot\\s${FEE_TEXT}`));
    expect(text).toContain(`Starting ${TIMEOUT_TEXT} after the hold`);
    const hours = `${LONGEST_AUTHORIZATION_SECONDS / 3_600} hours`;
    expect(text).toMatch(new RegExp(`for more\\sthan\\s${hours}`));
    const known = [FEE_TEXT, TIMEOUT_TEXT, hours, "0.10"];
    expect(figuresIn(text).filter((figure) => !known.includes(figure))).toEqual([]);
  });

  test("the verifier's README has none", () => {
    expect(figuresIn(read("verifier/README.md"))).toEqual([]);
  });
});
