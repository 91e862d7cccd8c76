import { expect, test } from "vitest";
import { POLICY_V1 } from "../../../api/arbiter/policy/v1/policy.ts";
import { FETCH_LIMITS_V1, HTTP_DELIVERY_V1, MAX_ATTEMPTS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import { VERSION_1 } from "../../../api/arbiter/policy/v1/version.ts";
import { CORRECTION_DAYS } from "../../../api/arbiter/products.ts";
import { inWords } from "../../../api/layout/html.ts";

// The text of a published version stays as it is, and so do the figures that it is decided by.

const rule = (number: number): string => POLICY_V1.rules.find((one) => one.number === number)?.text ?? "";

test("http-delivery is published with the limits that it is decided by", () => {
  const { deadlineMs, maxRedirects, maxBodyBytes, maxCodings } = FETCH_LIMITS_V1;
  const { summary, table } = HTTP_DELIVERY_V1;
  expect(summary).toContain(
    `${inWords(MAX_ATTEMPTS_V1)} attempts at most, ${deadlineMs / 1000} seconds each, ${inWords(maxRedirects)} redirects, ${maxBodyBytes / 2 ** 20} MiB`,
  );
  expect(table.map(({ observed }) => observed).join("\n")).toContain(`more than ${inWords(maxCodings)} codings`);
});

test("rule 1 names the categories that are decided, and no other", () => {
  const names = VERSION_1.categories.map(({ name }) => name);
  expect(POLICY_V1.categories.map(({ name }) => name)).toEqual(names);
  const list = new Intl.ListFormat("en-GB").format(names);
  expect(rule(1)).toContain(`There are ${inWords(names.length)} categories and no others: ${list}.`);
});

test("rule 9 gives the time in which a correction is run", () => {
  expect(rule(9)).toContain(`Within ${CORRECTION_DAYS} days`);
});
