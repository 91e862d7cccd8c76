import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { claimSchema, conditionsSha256 } from "../../../api/arbiter/claim.ts";
import { POLICY_V1 } from "../../../api/arbiter/policy/v1/policy.ts";
import { decide, FETCH_LIMITS_V1, HTTP_DELIVERY_V1, MAX_ATTEMPTS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import { inWords } from "../../../api/platform/page/html.ts";
import { CLAIMS, examine, factsNamed, judged } from "../../support/arbiter/site.ts";

const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex");
const HASH = sha256("x");
const SHA = "a".repeat(40);
const URL_GIVEN = "https://shop.example/report.pdf?version=2";

/** Returns `ok`, `400`, or `422` with the policy's rule, from the schema's issues as the payment gate reads them. */
function taken(category: unknown, conditions: unknown): string {
  const { success, error } = claimSchema(CLAIMS).safeParse({ category, conditions });
  if (success) return "ok";
  const rules = error.issues.map((issue) => (issue.code === "custom" ? issue.params?.rule : null));
  return rules.every((rule) => rule !== null) ? `422 rule ${[...new Set(rules)].join()}` : "400";
}

describe("intake of http-delivery", () => {
  test.each([
    [{ url: URL_GIVEN }, "ok"],
    [{ url: "http://93.184.216.34:80/" }, "ok"],
    [{ url: "https://[2606:4700::1]/" }, "ok"],
    [{ url: URL_GIVEN, expect_status: 200, expect_sha256: HASH, min_bytes: "10", expect_contains: "ü" }, "ok"],
    [{ url: URL_GIVEN, expect_status: 599 }, "ok"],
    [{ url: URL_GIVEN, expect_status: 600 }, "400"],
    [{ url: URL_GIVEN, expect_status: 199 }, "400"],
    [{ url: URL_GIVEN, expect_status: "2xx" }, "400"],
    [{ url: URL_GIVEN, expect_sha256: HASH.slice(1) }, "400"],
    [{ url: URL_GIVEN, min_bytes: -1 }, "400"],
    [{ url: URL_GIVEN, min_bytes: 10 * 1024 * 1024 + 1 }, "422 rule 1"],
    [{ url: URL_GIVEN, expect_contains: "" }, "400"],
    [{ url: URL_GIVEN, expect_contains: "\ud800" }, "400"],
    [{ url: URL_GIVEN, expect_contains: "é".repeat(2_048) }, "ok"],
    [{ url: URL_GIVEN, expect_contains: "é".repeat(2_049) }, "400"],
    [{}, "400"],
    [{ url: 7 }, "400"],
    [{ url: "shop.example/report.pdf" }, "400"],
    [{ url: " https://shop.example/" }, "400"],
    [{ url: "https://shop.example/a b" }, "400"],
    [{ url: "https:\\\\shop.example/" }, "400"],
    [{ url: `https://shop.example/${"a".repeat(2_048)}` }, "400"],
    [{ url: "ftp://shop.example/" }, "422 rule 2"],
    [{ url: "https://me:secret@shop.example/" }, "422 rule 2"],
    [{ url: "https://@shop.example/" }, "422 rule 2"],
    [{ url: "https://shop.example/?api_key=1" }, "422 rule 2"],
    [{ url: "https://shop.example/?SIG=x" }, "422 rule 2"],
    [{ url: "https://shop.example:8443/" }, "422 rule 2"],
    [{ url: "http://127.0.0.1/" }, "422 rule 2"],
    [{ url: "http://0x7f.1/" }, "422 rule 2"],
    [{ url: "http://[::1]/" }, "422 rule 2"],
    [{ url: "http://localhost/" }, "422 rule 2"],
    [{ url: "https://trust.example/cert/1" }, "422 rule 7"],
    [{ url: URL_GIVEN, headers: { cookie: "a" } }, "422 rule 2"],
    [{ url: URL_GIVEN, cookies: "a" }, "422 rule 2"],
    [{ url: URL_GIVEN, screenshot: "data:" }, "422 rule 3"],
    [{ url: URL_GIVEN, expect_header: "a" }, "422 rule 1"],
    [{ url: URL_GIVEN, headers: {}, min_bytes: -1 }, "400"],
  ])("%j: %s", (conditions, answer) => {
    expect(taken("http-delivery", conditions)).toBe(answer);
  });
});

describe("intake of the other categories", () => {
  test.each([
    ["payload-hash", { payload_text: "", expected_sha256: HASH }, "ok"],
    ["payload-hash", { payload_b64: "eA==", expected_sha256: HASH }, "ok"],
    ["payload-hash", { expected_sha256: HASH }, "400"],
    ["payload-hash", { payload_text: "x", payload_b64: "eA==", expected_sha256: HASH }, "400"],
    ["payload-hash", { payload_b64: "eA", expected_sha256: HASH }, "400"],
    ["payload-hash", { payload_b64: "eB==", expected_sha256: HASH }, "400"],
    ["payload-hash", { payload_b64: "_-8=", expected_sha256: HASH }, "400"],
    ["payload-hash", { payload_text: "\udc00", expected_sha256: HASH }, "400"],
    ["payload-hash", { payload_text: "x", expected_sha256: HASH, logs: "all fine" }, "422 rule 3"],
    ["ci-status", { repo: "octo/app", commit_sha: SHA }, "ok"],
    ["ci-status", { repo: "octo/app", commit_sha: "A".repeat(64) }, "ok"],
    ["ci-status", { repo: "octo/app", commit_sha: SHA.slice(1) }, "400"],
    ["ci-status", { repo: "octo/app", commit_sha: "main" }, "400"],
    ["ci-status", { repo: "octo/..", commit_sha: SHA }, "400"],
    ["ci-status", { repo: "octo/a?b", commit_sha: SHA }, "400"],
    ["ci-status", { repo: "octo/app", commit_sha: SHA, token: "x" }, "422 rule 2"],
    ["quality-review", {}, "422 rule 1"],
    ["HTTP-delivery", { url: URL_GIVEN }, "422 rule 1"],
    ["constructor", {}, "422 rule 1"],
    [7, {}, "400"],
    ["http-delivery", null, "400"],
    ["http-delivery", [], "400"],
  ])("%s %j: %s", (category, conditions, answer) => {
    expect(taken(category, conditions)).toBe(answer);
  });
});

describe("payload-hash", () => {
  test.each([
    ["the text's hash releases", { payload_text: "Grüße", expected_sha256: sha256("Grüße") }, "release"],
    [
      "the bytes' hash releases",
      { payload_b64: Buffer.from([0, 255]).toString("base64"), expected_sha256: sha256(Buffer.from([0, 255])) },
      "release",
    ],
    ["another hash refunds", { payload_text: "Grüße", expected_sha256: HASH }, "refund"],
  ])("%s", async (_is, conditions, verdict) => {
    expect((await examine("payload-hash", conditions, {})).verdict).toBe(verdict);
  });

  test("The payload appears in no claim and in no fact", async () => {
    const conditions = { payload_text: "a secret text", expected_sha256: HASH };
    const evidence = await examine("payload-hash", conditions, {});
    const claim = claimSchema(CLAIMS).parse({ category: "payload-hash", conditions });
    expect(JSON.stringify([evidence, claim])).not.toContain("secret");
    expect(factsNamed(evidence, "payload")).toEqual([
      { fact: "payload", encoding: "text", bytes: 13, sha256: sha256("a secret text") },
    ]);
    expect(judged(evidence)).toEqual(["expected_sha256 false mismatch"]);
    expect(evidence.timeline).toEqual([]);
  });

  test("Any bytes are measured exactly", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array(), fc.boolean(), async (bytes, isRight) => {
        const expected_sha256 = isRight ? sha256(bytes) : sha256(Buffer.concat([bytes, Buffer.from([0])]));
        const conditions = { payload_b64: Buffer.from(bytes).toString("base64"), expected_sha256 };
        expect((await examine("payload-hash", conditions, {})).verdict).toBe(isRight ? "release" : "refund");
      }),
    ));
});

describe("conditions_sha256", () => {
  test("The hash is SHA-256 over the canonical JSON of category and conditions as submitted", () => {
    const json = `{"category":"http-delivery","conditions":{"expect_status":"200","url":"${URL_GIVEN}"}}`;
    expect(conditionsSha256("http-delivery", { url: URL_GIVEN, expect_status: "200" })).toBe(sha256(json));
    const claim = claimSchema(CLAIMS).parse({
      category: "http-delivery",
      conditions: { url: URL_GIVEN, expect_status: "200" },
    });
    expect(claim.conditionsSha256).toBe(sha256(json));
  });

  test("The hash does not depend on the order of conditions, and it changes with every value", () =>
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue(), { noNullPrototype: true }),
        fc.string(),
        (conditions, more) => {
          const turned = Object.fromEntries(Object.entries(conditions).reverse());
          expect(conditionsSha256("c", turned)).toBe(conditionsSha256("c", conditions));
          expect(conditionsSha256("c", { ...conditions, [`${more}+`]: conditions[`${more}+`] === 1 ? 2 : 1 })).not.toBe(
            conditionsSha256("c", conditions),
          );
        },
      ),
    ));
});

describe("the policy", () => {
  test("Version 1 is never edited", () => {
    expect(conditionsSha256("policy", POLICY_V1)).toMatchInlineSnapshot(
      `"c9884208c28436c08dec63dd929500a9ad8bfbe18a22c79b9b9cf700e5f899de"`,
    );
  });

  test("The policy lists exactly the conditions that the schema accepts", () => {
    const all = {
      "http-delivery": { url: URL_GIVEN, expect_status: 200, expect_sha256: HASH, min_bytes: 1, expect_contains: "x" },
      "payload-hash": { payload_text: "x", payload_b64: "eA==", expected_sha256: HASH },
      "ci-status": { repo: "octo/app", commit_sha: SHA },
    };
    for (const { name, conditions } of POLICY_V1.categories)
      expect(
        conditions.map((one) => one.name),
        name,
      ).toEqual(Object.keys(all[name as keyof typeof all]));
  });

  test("The decision is release if all results are true, refund if any is false, and escalate otherwise", () => {
    const results = fc.array(fc.constantFrom("true", "false", "unknown"));
    fc.assert(
      fc.property(results, (given) => {
        const expected = given.includes("false")
          ? "refund"
          : given.length > 0 && !given.includes("unknown")
            ? "release"
            : "escalate";
        expect(decide(given as ("true" | "false" | "unknown")[])).toBe(expected);
      }),
    );
    expect(decide([])).toBe("escalate");
  });
});

describe("the published figures", () => {
  // A published version's text never changes, so its limits must not change either.

  test("The published text of http-delivery states the limits that the code enforces", () => {
    const { deadlineMs, maxRedirects, maxBodyBytes, maxCodings } = FETCH_LIMITS_V1;
    const { summary, table } = HTTP_DELIVERY_V1;
    expect(summary).toContain(
      `${inWords(MAX_ATTEMPTS_V1)} attempts at most, ${deadlineMs / 1000} seconds each, ${inWords(maxRedirects)} redirects, ${maxBodyBytes / 2 ** 20} MiB`,
    );
    expect(table.map(({ observed }) => observed).join("\n")).toContain(`more than ${inWords(maxCodings)} codings`);
  });
});
