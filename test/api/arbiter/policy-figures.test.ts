import { expect, test } from "vitest";
import { MOST_TRANSFERS } from "../../../api/arbiter/chain.ts";
import type { Policy } from "../../../api/arbiter/policy/policy.ts";
import { POLICY_V1, VERSION_1 } from "../../../api/arbiter/policy/v1/policy.ts";
import {
  FETCH_LIMITS_V1,
  HTTP_DELIVERY_V1,
  MAX_ATTEMPTS_V1,
  PAYLOAD_HASH_V1,
} from "../../../api/arbiter/policy/v1/tables.ts";
import { CI_STATUS_V2 } from "../../../api/arbiter/policy/v2/ci-status.ts";
import {
  ABSENT_STATUSES_V2,
  AGAIN_AFTER_MS_V2,
  CHALLENGE_HEADERS_V2,
  HTTP_DELIVERY_V2,
} from "../../../api/arbiter/policy/v2/http-delivery.ts";
import { OFFER_BREACH_V2 } from "../../../api/arbiter/policy/v2/offer-breach.ts";
import { POLICY_V2, VERSION_2 } from "../../../api/arbiter/policy/v2/policy.ts";
import { CORRECTION_DAYS } from "../../../api/arbiter/products.ts";
import { inWords } from "../../../api/platform/page/html.ts";

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

test("version 2 of http-delivery is published with the time between its attempts and with its firewalls' headers", () => {
  const { summary, table } = HTTP_DELIVERY_V2;
  const { deadlineMs, maxRedirects, maxBodyBytes } = FETCH_LIMITS_V1;
  expect(summary).toContain(
    `${inWords(MAX_ATTEMPTS_V1)} attempts at most, ${deadlineMs / 1000} seconds each, ${inWords(maxRedirects)} redirects, ${maxBodyBytes / 2 ** 20} MiB`,
  );
  expect(summary).toContain(`${AGAIN_AFTER_MS_V2 / 1000} seconds apart`);
  const rows = table.map(({ observed }) => observed).join("\n");
  for (const { name } of CHALLENGE_HEADERS_V2) expect(rows).toContain(name);
  expect(rows).toContain(`Not expected: ${ABSENT_STATUSES_V2.join(" or ")}.`);
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

test("version 2 has other tables for http-delivery and ci-status, and offer-breach: the rest is version 1's", () => {
  const { rules, categories, version, effective_date, ...rest } = POLICY_V2;
  expect(rest).toEqual({
    status: POLICY_V1.status,
    role: POLICY_V1.role,
    decision: POLICY_V1.decision,
  });
  expect([version, effective_date > POLICY_V1.effective_date]).toEqual([2, true]);
  expect(categories).toEqual([HTTP_DELIVERY_V2, PAYLOAD_HASH_V1, CI_STATUS_V2, OFFER_BREACH_V2]);
  // A claim that was written for version 1 can still be made.
  for (const [index, { name, conditions }] of POLICY_V1.categories.entries())
    expect(categories[index]).toMatchObject({ name, conditions });
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
