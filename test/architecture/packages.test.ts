import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { POLICY_VERSIONS } from "../../api/arbiter/policy/index.ts";
import { VALID_FOR_DAYS } from "../../api/certificates/certificate.ts";
import { perCapability } from "../../api/certificates/products.ts";
import { TIMEOUT_SECONDS } from "../../api/escrow/payment.ts";
import { ACTIVITY_DAYS } from "../../api/platform/index/activity.ts";
import { MAX_WALLETS } from "../../api/score/request.ts";
import { passes } from "../../packages/action/src/verify.ts";
import { LIMITS } from "../../packages/mcp/src/products.ts";
import { unmet } from "../../packages/verifier/src/requirement.ts";
import { CATEGORIES } from "../../packages/verifier/src/vocabulary.ts";
import { type RouteLine, readRoutes } from "../../scripts/docs-tables.ts";
import { PACKAGE_TEXTS, packageText } from "../../scripts/package-texts.ts";

const read = (path: string): string => readFileSync(new URL(`../../packages/${path}`, import.meta.url), "utf8");

let routes: readonly RouteLine[];

beforeAll(async () => {
  routes = await readRoutes();
});

test.each(PACKAGE_TEXTS)("`npm run docs` leaves packages/%s unchanged", (name) => {
  const text = read(name);
  expect(packageText(name, text, routes)).toBe(text);
});

test("The verifier's categories are the categories of the arbiter's policies", () => {
  const named = POLICY_VERSIONS.flatMap(({ categories }) => categories.map(({ name }) => name));
  expect(CATEGORIES).toEqual([...new Set(named)]);
});

test("The arbiter's policies are numbered from 1, each takes effect after the one before, and rule 1 names its categories", () => {
  const policies = POLICY_VERSIONS.map(({ policy }) => policy);
  expect(policies.map(({ version }) => version)).toEqual(policies.map((_, index) => index + 1));
  const days = policies.map(({ effective_date }) => effective_date);
  expect(days).toEqual([...new Set(days)].sort());
  for (const { categories: decided, policy } of POLICY_VERSIONS) {
    const names = policy.categories.map(({ name }) => name);
    expect(decided.map(({ name }) => name)).toEqual(names);
    const text = policy.rules.find(({ number }) => number === 1)?.text ?? "";
    expect(names.filter((name) => !text.includes(name))).toEqual([]);
  }
});

test("The action and the verifier have the same requirement for a capability", () => {
  const until = new Date(Date.now() + 1_000).toISOString();
  for (const result of ["pass", "fail", null] as const)
    for (const fresh of [true, false]) {
      const record = { capabilities: perCapability(() => ({ result, fresh, valid_until: until })) };
      const isUnmet = unmet(record, ["can_pay"], new Date()).length > 0;
      expect(passes(record, "can_pay"), `${result}, ${fresh}`).toBe(!isUnmet);
    }
});

test("The limits in the MCP tools are the service's limits", () => {
  expect(LIMITS).toEqual({
    batchWallets: MAX_WALLETS,
    certificateDays: VALID_FOR_DAYS,
    activityDays: ACTIVITY_DAYS,
    escrowTimeoutMinutes: TIMEOUT_SECONDS / 60,
  });
});
