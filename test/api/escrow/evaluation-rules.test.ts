import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deliveryOf, FORWARD } from "../../../api/escrow/delivery.ts";
import { escrowOverview } from "../../../api/escrow/overview.ts";
import { feeOf } from "../../../api/escrow/payment.ts";
import { type Content, evaluate, RULES } from "../../../packages/escrow/src/rules.ts";

const JSON_TYPES = [
  null,
  "",
  "application/json",
  "Application/JSON; charset=utf-8",
  "text/json",
  "application/problem+json",
  "model/gltf+json; v=2",
];
const OTHER_TYPES = [
  "text/plain",
  "text/html; charset=utf-8",
  "image/png",
  "application/octet-stream",
  "application/json-seq",
  "application/jsonl",
  "text/plain; note=application/json",
];

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const jsonType = fc.constantFrom(...JSON_TYPES);
const otherType = fc.constantFrom(...OTHER_TYPES);
const anyType = fc.oneof(jsonType, otherType, fc.string());
const anyStatus = fc.integer({ min: 100, max: 599 });
const anyBody = fc.oneof(
  fc.uint8Array(),
  fc.json().map(bytes),
  fc.stringMatching(/^\s*$/).map(bytes),
  fc.string().map(bytes),
);
const anyDelivery = fc.record({ status: anyStatus, contentType: anyType, body: anyBody });

const ruleOf = (content: Content) => evaluate(content).id;
const decide = (body: string | Uint8Array, contentType: string | null = "application/json", status = 200) =>
  ruleOf({ status, contentType, body: typeof body === "string" ? bytes(body) : body });

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** An independent implementation of the published rules. */
function expected({ status, contentType, body }: Content & { readonly body: Uint8Array }): string {
  if (status === 400 || status === 422) return "refused_input";
  if (status >= 400) return "error_status";
  const text = Buffer.from(body).toString("utf8");
  if (text.replace(/^\uFEFF/, "").trim() === "") return "empty_response";
  if (!isJsonType(contentType)) return "delivered";
  const plain = text.replace(/^\uFEFF/, "");
  const isUtf8 = Buffer.from(text).equals(Buffer.from(body));
  if (!isUtf8 || !isJson(plain)) return "malformed_json";
  const value: unknown = JSON.parse(plain);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return "delivered";
  const members = new Map(Object.entries(value));
  const unset = [undefined, null, false, ""];
  const isSet = (part: unknown) => !unset.includes(part as null) && !(Array.isArray(part) && part.length === 0);
  const failed = isSet(members.get("error")) || isSet(members.get("errors")) || members.get("success") === false;
  return failed ? "error_payload" : "delivered";
}

const isJsonType = (contentType: string | null): boolean => {
  const essence = (contentType ?? "").split(/[;,]/)[0]?.trim().toLowerCase() ?? "";
  if (["", "application/json", "text/json"].includes(essence)) return true;
  const parts = essence.split("/");
  const subtype = parts[1] ?? "";
  return parts.length === 2 && parts[0] !== "" && !/\s/.test(essence) && /[^+]?.+\+json$/.test(subtype);
};

describe("rules of an evaluation", () => {
  test("Every delivery gets the decision of the published rules, and always the same one", () => {
    fc.assert(
      fc.property(anyDelivery, (delivery) => {
        const rule = evaluate(delivery);
        expect(rule.id).toBe(expected(delivery));
        expect(evaluate({ ...delivery, body: Uint8Array.from(delivery.body) })).toBe(rule);
        expect(rule.decision).toBe(rule.id === "delivered" ? "release" : "refund");
      }),
      { numRuns: 2_000 },
    );
  });

  test("JSON truncated at any byte is refunded", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        jsonType,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (value, type, at) => {
          const whole = bytes(JSON.stringify(value));
          const cut = whole.subarray(0, Math.max(1, Math.floor(whole.length * at)));
          expect(decide(cut, type)).toBe("malformed_json");
        },
      ),
    );
  });

  test("Invalid UTF-8 is refunded where JSON is expected", () => {
    const wrong = [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80]];
    for (const part of wrong)
      expect(decide(Uint8Array.of(0x22, ...part, 0x22), null), part.join()).toBe("malformed_json");
  });

  test.each([
    ['{"error":"no"}', "error_payload"],
    ['{"error":{}}', "error_payload"],
    ['{"error":0}', "error_payload"],
    ['{"errors":[{}]}', "error_payload"],
    ['{"success":false,"haiku":"x"}', "error_payload"],
    ['{"error":null,"errors":[],"success":true}', "delivered"],
    ['{"error":"","errors":false}', "delivered"],
    ['{"success":"false"}', "delivered"],
    ['{"data":{"error":"no","success":false}}', "delivered"],
    ['[{"error":"no"}]', "delivered"],
    ['{"__proto__":{"error":"no"}}', "delivered"],
    ["null", "delivered"],
    ["0", "delivered"],
    ['"error"', "delivered"],
    ["{}", "delivered"],
    ["{'a':1}", "malformed_json"],
    ["NaN", "malformed_json"],
    ["<html></html>", "malformed_json"],
  ])("%s is decided as %s", (body, rule) => {
    for (const type of JSON_TYPES) expect(decide(body, type)).toBe(rule);
  });

  test("The rules are published in order, each with its decision", () => {
    const limits = { minimum: 10_000n, payerGas: 0n, keeperGas: 0n };
    const { verdict_policy, fee_policy } = escrowOverview([], { limits, baseUrl: "https://trust.example" });
    expect(verdict_policy.rules).toEqual(RULES.map(({ id, decision, when }) => ({ id, decision, when })));
    expect(RULES.map(({ id }) => id)).toEqual([
      ...["refused_input", "error_status", "undecodable"],
      ...["empty_response", "malformed_json", "error_payload", "delivered"],
    ]);
    expect(RULES.filter(({ counts }) => !counts).map(({ id }) => id)).toEqual(["refused_input"]);
    expect([verdict_policy.timeout_seconds, fee_policy.fee_bps]).toEqual([1_800, 100]);
  });
});

test("The fee is 1%, rounded down to zero below 100 units", () => {
  expect([0n, 99n, 100n, 199n, 1_000_000n].map(feeOf)).toEqual([0n, 0n, 1n, 1n, 10_000n]);
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 120n - 1n }), (amount) => {
      const fee = feeOf(amount);
      expect(fee * 100n <= amount && amount < (fee + 1n) * 100n).toBe(true);
    }),
  );
});

describe("forwarded delivery", () => {
  const ID = `0x${"11".repeat(32)}`;
  const parse = (body: unknown) => FORWARD.safeParse(body);
  const delivery = (body: object) => deliveryOf(FORWARD.parse({ payment_id: ID, ...body }));

  test("The delivery has the exact bytes that were sent as text, as base64, or as a bare body", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.uint8Array(), anyStatus, (text, content, status) => {
        const plain = delivery({ response: { status, body: text } });
        expect([plain.status, Buffer.from(plain.body)]).toEqual([status, Buffer.from(text)]);
        const encoded = delivery({ response: { status, body_base64: Buffer.from(content).toString("base64") } });
        expect(Buffer.from(encoded.body)).toEqual(Buffer.from(content));
        const bare = delivery({ responseBody: text });
        expect([bare.status, bare.contentType, Buffer.from(bare.body)]).toEqual([200, null, Buffer.from(text)]);
      }),
    );
  });

  test("The content type comes from the headers in any spelling", () => {
    const typeOf = (headers: object) => delivery({ response: { status: 200, headers, body: "" } }).contentType;
    expect(typeOf({ "Content-TYPE": "text/html" })).toBe("text/html");
    expect(typeOf({ "content-type": ["image/png", "text/html"] })).toBe("image/png");
    expect([typeOf({}), typeOf({ "x-content-type": "text/html" })]).toEqual([null, null]);
    expect(delivery({ response: { status: 200 } }).body).toHaveLength(0);
  });

  test.each([
    ["no payment", { responseBody: "" }],
    ["two payments", { payment_id: ID, transaction: ID, responseBody: "" }],
    ["no response", { payment_id: ID }],
    ["two responses", { payment_id: ID, responseBody: "", response: { status: 200 } }],
    ["two bodies", { payment_id: ID, response: { status: 200, body: "", body_base64: "" } }],
    ["truncated base64", { payment_id: ID, response: { status: 200, body_base64: "QQ=" } }],
    ["base64url", { payment_id: ID, response: { status: 200, body_base64: "_-__" } }],
    ["a status of 600", { payment_id: ID, response: { status: 600 } }],
    ["a status as text", { payment_id: ID, response: { status: "200" } }],
    ["a short ID", { payment_id: "0x11", responseBody: "" }],
    ["a signature of half a byte", { payment_id: ID, responseBody: "", signature: "0x123" }],
  ])("A delivery with %s is rejected", (_, body) => {
    expect(parse(body).success).toBe(false);
    expect(parse({ payment_id: ID, responseBody: "" }).success).toBe(true);
  });
});
