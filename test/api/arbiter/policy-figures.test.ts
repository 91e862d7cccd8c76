import { expect, test } from "vitest";
import { MOST_TRANSFERS } from "../../../api/adapters/chain/final-transaction.ts";
import type { Policy } from "../../../api/arbiter/policy/policy.ts";
import { POLICY_V1 } from "../../../api/arbiter/policy/v1/policy.ts";
import { FETCH_LIMITS_V1, HTTP_DELIVERY_V1, MAX_ATTEMPTS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import { VERSION_1 } from "../../../api/arbiter/policy/v1/version.ts";
import { POLICY_V2 } from "../../../api/arbiter/policy/v2/policy.ts";
import { OFFER_BREACH_V2 } from "../../../api/arbiter/policy/v2/tables.ts";
import { VERSION_2 } from "../../../api/arbiter/policy/v2/version.ts";
import { CORRECTION_DAYS } from "../../../api/arbiter/products.ts";
import { inWords } from "../../../api/layout/html.ts";

// The text of a published version stays as it is, and so do the figures that it is decided by.

const ruleOf = ({ rules }: Policy, number: number): string => rules.find((one) => one.number === number)?.text ?? "";

test("http-delivery is published with the limits that it is decided by", () => {
  const { deadlineMs, maxRedirects, maxBodyBytes, maxCodings } = FETCH_LIMITS_V1;
  const { summary, table } = HTTP_DELIVERY_V1;
  expect(summary).toContain(
    `${inWords(MAX_ATTEMPTS_V1)} attempts at most, ${deadlineMs / 1000} seconds each, ${inWords(maxRedirects)} redirects, ${maxBodyBytes / 2 ** 20} MiB`,
  );
  expect(table.map(({ observed }) => observed).join("\n")).toContain(`more than ${inWords(maxCodings)} codings`);
});

test.each([VERSION_1, VERSION_2])(
  "rule 1 of version $policy.version names the categories that are decided, and no other",
  ({ policy, categories }) => {
    const names = categories.map(({ name }) => name);
    expect(policy.categories.map(({ name }) => name)).toEqual(names);
    const list = new Intl.ListFormat("en-GB").format(names);
    expect(ruleOf(policy, 1)).toContain(`There are ${inWords(names.length)} categories and no others: ${list}.`);
  },
);

test("rule 9 gives the time in which a correction is run", () => {
  for (const policy of [POLICY_V1, POLICY_V2]) expect(ruleOf(policy, 9)).toContain(`Within ${CORRECTION_DAYS} days`);
});

test("version 2 is version 1 and offer-breach: the rest of its rules and tables are the same", () => {
  const { rules, categories, version, effective_date, ...rest } = POLICY_V2;
  expect(rest).toEqual({
    status: POLICY_V1.status,
    role: POLICY_V1.role,
    decision: POLICY_V1.decision,
  });
  expect([version, effective_date > POLICY_V1.effective_date]).toEqual([2, true]);
  expect(categories.slice(0, -1)).toEqual(POLICY_V1.categories);
  const changed = rules.filter((rule) => !POLICY_V1.rules.includes(rule)).map(({ number }) => number);
  expect([rules.map(({ number }) => number), changed]).toEqual([
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    [1, 3, 12],
  ]);
});

test("offer-breach is published with every condition that it judges, and with its limits", () => {
  const { table, conditions } = OFFER_BREACH_V2;
  expect([...new Set(table.flatMap(({ condition }) => condition.split(", ")))]).toEqual([
    "offer",
    "receipt",
    "claimant",
    "settlement",
    "time",
    "network",
    "asset",
    "payee",
    "amount",
  ]);
  expect(conditions.map(({ name }) => name)).toEqual(["offer", "receipt", "settlement"]);
  expect(table.map(({ observed }) => observed).join("\n")).toContain(`more than ${MOST_TRANSFERS};`);
});
