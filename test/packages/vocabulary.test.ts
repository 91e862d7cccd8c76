import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { POLICY_VERSIONS } from "../../api/arbiter/policy/index.ts";
import { PRICES } from "../../api/arbiter/products.ts";
import { VALID_FOR_DAYS } from "../../api/certificates/certificate.ts";
import { basic } from "../../api/certificates/kinds/basic.ts";
import { KINDS } from "../../api/certificates/kinds/index.ts";
import { suite } from "../../api/certificates/kinds/suite.ts";
import {
  BEHAVIORAL_PRODUCTS,
  PRODUCTS as CERTIFIED,
  perCapability,
  SINGLE_PRODUCTS,
} from "../../api/certificates/products.ts";
import { FEE_TEXT, TIMEOUT_SECONDS, TIMEOUT_TEXT } from "../../api/escrow/payment.ts";
import { ACTIVITY_DAYS } from "../../api/platform/index/activity.ts";
import { formatUsd } from "../../api/platform/money.ts";
import { MAX_WALLETS, SCORE_PRICES } from "../../api/score/request.ts";
import * as action from "../../packages/action/src/inputs.ts";
import { passes } from "../../packages/action/src/verify.ts";
import { LONGEST_AUTHORIZATION_SECONDS } from "../../packages/escrow/src/acceptable.ts";
import { PRODUCTS } from "../../packages/mcp/src/products.ts";
import { DEFAULT_BUDGET_USD } from "../../packages/mcp/src/settings.ts";
import * as mcp from "../../packages/mcp/src/vocabulary.ts";
import * as verifier from "../../packages/verifier/src/requirement.ts";
import { CAPABILITIES as SCORED } from "../../packages/verifier/src/score/record.ts";

const read = (path: string): string => readFileSync(new URL(`../../packages/${path}`, import.meta.url), "utf8");
const CAPABILITIES = Object.keys(perCapability(() => null));

describe("the names in the packages are the service's", () => {
  test("of tests and capabilities, in their order", () => {
    expect(mcp.CAPABILITIES).toEqual(CAPABILITIES);
    expect(action.CAPABILITIES).toEqual(CAPABILITIES);
    expect(verifier.REQUIREMENTS).toEqual(["verified", ...CAPABILITIES]);
    expect(mcp.SINGLE_TESTS).toEqual(SINGLE_PRODUCTS);
    expect(mcp.BEHAVIORAL_TESTS).toEqual(BEHAVIORAL_PRODUCTS);
    expect(action.PRODUCTS).toEqual(Object.fromEntries(KINDS.map(({ product }) => [product, `/test/${product}`])));
  });

  test("of what the score looks at", () => {
    expect(SCORED).toEqual(perCapability((product) => product));
    for (const [capability, product] of Object.entries(SCORED)) expect(CERTIFIED[product].capability).toBe(capability);
  });

  test("of the arbiter's categories", () => {
    const named = POLICY_VERSIONS.flatMap(({ categories }) => categories.map(({ name }) => name));
    expect(mcp.CATEGORIES).toEqual([...new Set(named)]);
  });
});

test("the action requires of a capability what the verifier requires", () => {
  const until = new Date(Date.now() + 1_000).toISOString();
  for (const result of ["pass", "fail", null] as const)
    for (const fresh of [true, false]) {
      const record = { capabilities: perCapability(() => ({ result, fresh, valid_until: until })) };
      const isUnmet = verifier.unmet(record, ["can_pay"], new Date()).length > 0;
      expect(passes(record, "can_pay"), `${result}, ${fresh}`).toBe(!isUnmet);
    }
});

test("the limits in the MCP tools are the service's", () => {
  expect(mcp.LIMITS).toEqual({
    batchWallets: MAX_WALLETS,
    certificateDays: VALID_FOR_DAYS,
    activityDays: ACTIVITY_DAYS,
    escrowTimeoutMinutes: TIMEOUT_SECONDS / 60,
  });
});

test("the prices in the MCP tools are the service's", () => {
  expect(Object.fromEntries(Object.values(PRODUCTS).map(({ path, price }) => [path, price]))).toEqual({
    "/score": SCORE_PRICES.one,
    "/score/batch": SCORE_PRICES.batch,
    "/test/basic": basic.price,
    "/test/suite": suite.price,
    "/arbiter/verify": PRICES.plain,
    "/arbiter/verify/scored": PRICES.scored,
  });
});

/** Prices, and numbers with a unit, as a text prints them. */
const figuresIn = (text: string): readonly string[] => [
  ...new Set(text.match(/\b\d+\.\d\d\b(?!\.\d)|\b\d+(%| (days|hours|minutes|wallets)\b)/g)),
];

describe("the printed figures of the packages", () => {
  test("in the MCP tools' README", () => {
    const prices = {
      score_wallet: formatUsd(SCORE_PRICES.one),
      score_batch: formatUsd(SCORE_PRICES.batch),
      certify: `${formatUsd(basic.price)} basic, ${formatUsd(suite.price)} suite`,
      arbiter_verify: `${formatUsd(PRICES.plain)}, scored ${formatUsd(PRICES.scored)}`,
    };
    const text = read("mcp/README.md");
    for (const [tool, price] of Object.entries(prices)) expect(text).toContain(`| \`${tool}\` | ${price} |`);
    expect(text).toContain(`up to ${MAX_WALLETS} of them`);
    expect(text).toContain(`default \`${DEFAULT_BUDGET_USD}\``);
    const budgets = [DEFAULT_BUDGET_USD, "1.00"];
    const known = [...Object.values(SCORE_PRICES), basic.price, suite.price, ...Object.values(PRICES)].map(formatUsd);
    expect(figuresIn(text).filter((figure) => ![...known, ...budgets].includes(figure))).toEqual([]);
  });

  test("in the action's description and README", () => {
    const { inputs } = parse(read("action/action.yml"));
    const tests = SINGLE_PRODUCTS.join(" or ");
    expect(inputs.test).toEqual({ description: `certify: ${tests}`, default: "basic" });
    expect(inputs["max-price"].default).toBe(formatUsd(basic.price));
    expect(inputs.require.description).toMatch(new RegExp(`: ${CAPABILITIES.join(", ")}$`));
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
