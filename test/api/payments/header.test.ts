import { decodePaymentSignatureHeader, encodePaymentRequiredHeader } from "@x402/core/http";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bodyJson,
  fingerprint,
  isStorable,
  MAX_HEADER_BYTES,
  parsePaymentHeaders,
  toBase64Json,
} from "../../../api/payments/header.ts";
import { EXACT } from "../../../api/payments/schemes/exact.ts";
import { decodeJson } from "../../../packages/escrow/src/envelope.ts";

const AUTHORIZATION = {
  from: "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
  to: "0x00000000000000000000000000000000C0FFEE01",
  value: "250000",
  validAfter: "0",
  validBefore: "1900000000",
  nonce: `0x${"AB".repeat(32)}`,
};
const PAYLOAD = { signature: `0x${"Cd".repeat(65)}`, authorization: AUTHORIZATION };
const V2 = { x402Version: 2, payload: PAYLOAD };
const V1 = { x402Version: 1, scheme: "exact", network: "base", payload: PAYLOAD };
const read = (signature?: string, payment?: string) =>
  parsePaymentHeaders({ "PAYMENT-SIGNATURE": signature, "X-PAYMENT": payment }, [EXACT]);
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
const presented = (signature?: object, payment?: object) =>
  read(signature && encode(signature), payment && encode(payment));
const withAuthorization = (change: Record<string, unknown>) => ({
  ...V2,
  payload: { ...PAYLOAD, authorization: { ...AUTHORIZATION, ...change } },
});

const PARSED = {
  authorization: {
    from: "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
    to: "0x00000000000000000000000000000000c0ffee01",
    value: 250_000n,
    validAfter: 0n,
    validBefore: 1_900_000_000n,
    nonce: `0x${"ab".repeat(32)}`,
  },
  signature: `0x${"cd".repeat(65)}`,
  scheme: "exact",
  details: null,
  paymentId: null,
};

describe("Valid payment headers", () => {
  test("A request without a payment header carries no payment", () => expect(read(undefined, undefined)).toBeNull());

  test("PAYMENT-SIGNATURE is read as version 2, with lowercase hex and exact amounts", () =>
    expect(presented(V2)).toEqual({ ...PARSED, version: "v2", claimed: {} }));

  test("X-PAYMENT is read as version 1 and claims its scheme and network", () =>
    expect(presented(undefined, V1)).toEqual({
      ...PARSED,
      version: "v1",
      claimed: { scheme: "exact", network: "base" },
    }));

  test("The client's `accepted` object is read as its claim, despite unknown fields and wrong types", () => {
    const accepted = { scheme: "exact", network: "eip155:8453", asset: "0xA", payTo: 7, amount: "1", extra: [] };
    expect(presented({ ...V2, accepted, resource: { url: "x" }, extensions: {} })).toMatchObject({
      claimed: { scheme: "exact", network: "eip155:8453", asset: "0xA", payTo: undefined, amount: "1" },
    });
  });

  test("Amounts and times may be JSON integers", () =>
    expect(presented(withAuthorization({ value: 250_000, validBefore: 1_900_000_000 }))).toMatchObject(PARSED));

  test("The largest uint256 is a valid amount", () =>
    expect(presented(withAuthorization({ value: String(2n ** 256n - 1n) }))).toMatchObject({
      authorization: { value: 2n ** 256n - 1n },
    }));

  test("The envelope decides the version, not the header's name", () => {
    expect(presented(undefined, V2)).toEqual({ ...PARSED, version: "v2", claimed: {} });
    expect(presented(V1)).toEqual({ ...PARSED, version: "v1", claimed: { scheme: "exact", network: "base" } });
  });

  test("The same authorization in both headers is one payment, of version 2 if either envelope is", () => {
    const header = encode(V2);
    expect(read(header, header)).toMatchObject({ ...PARSED, version: "v2" });
    expect(presented(V2, V1)).toMatchObject({ ...PARSED, version: "v2" });
    expect(presented(V1, V2)).toMatchObject({ ...PARSED, version: "v2" });
    expect(presented(V1, V1)).toMatchObject({ ...PARSED, version: "v1" });
  });

  test("One authorization may be written differently in each header, and either header may carry its identifier", () => {
    const respelled = withAuthorization({ from: AUTHORIZATION.from.toLowerCase(), value: 250_000 });
    const named = { ...respelled, extensions: { "payment-identifier": { info: { id: "an-identifier-of-it" } } } };
    expect(presented(V2, respelled)).toMatchObject({ ...PARSED, version: "v2" });
    expect(presented(V2, named)).toMatchObject({ paymentId: "an-identifier-of-it" });
    expect(presented(named, V1)).toMatchObject({ paymentId: "an-identifier-of-it" });
  });

  test.each([16, 128])("A payment identifier may have %i characters", (length) => {
    const id = "a-_9".repeat(32).slice(0, length);
    expect(presented({ ...V2, extensions: { "payment-identifier": { info: { required: false, id } } } })).toMatchObject(
      { paymentId: id },
    );
  });

  test.each([{ required: false }, { required: false, id: null }])(
    "An echoed payment-identifier extension without an id is not an identifier",
    (info) =>
      expect(presented({ ...V2, extensions: { "payment-identifier": { info } } })).toMatchObject({ paymentId: null }),
  );

  test("A header of exactly the maximum size is read", () => {
    const padded = { ...V2, pad: "" };
    const room = Math.floor((MAX_HEADER_BYTES / 4) * 3) - JSON.stringify(padded).length;
    const header = encode({ ...padded, pad: "x".repeat(room) });
    expect(header).toHaveLength(MAX_HEADER_BYTES);
    expect(read(header, undefined)).toMatchObject({ version: "v2" });
  });
});

describe("Malformed payment headers", () => {
  const id = (value: unknown) => ({ ...V2, extensions: { "payment-identifier": { info: { id: value } } } });
  test.each<[string, unknown]>([
    ["an array", []],
    ["no version", { payload: PAYLOAD }],
    ["version 3", { ...V2, x402Version: 3 }],
    ["no payload", { x402Version: 2 }],
    ["no signature", { ...V2, payload: { authorization: AUTHORIZATION } }],
    ["a signature of half a byte", { ...V2, payload: { ...PAYLOAD, signature: "0xabc" } }],
    ["a signature that is not hex", { ...V2, payload: { ...PAYLOAD, signature: `0x${"zz".repeat(65)}` } }],
    ["a signature over 4 KiB", { ...V2, payload: { ...PAYLOAD, signature: `0x${"ab".repeat(4097)}` } }],
    ["a missing field", withAuthorization({ validBefore: undefined })],
    ["a payer that is not an address", withAuthorization({ from: "0x1234" })],
    ["a negative amount", withAuthorization({ value: "-1" })],
    ["an amount with decimals", withAuthorization({ value: "0.25" })],
    ["an amount beyond uint256", withAuthorization({ value: String(2n ** 256n) })],
    ["an inexact JSON number", withAuthorization({ value: 2 ** 53 })],
    ["a short nonce", withAuthorization({ nonce: `0x${"ab".repeat(31)}` })],
    ["a short identifier", id("a".repeat(15))],
    ["a long identifier", id("a".repeat(129))],
    ["an identifier with a space", id("a".repeat(20).replace("aa", "a "))],
    ["an identifier that is a number", id(1_234_567_890_123_456)],
  ])("A payment is malformed with %s", (_, payload) => {
    expect(read(encode(payload), undefined)).toEqual({ malformed: expect.any(String) });
  });

  test.each([
    ["that is empty", ""],
    ["whose base64 is not JSON", Buffer.from("hello").toString("base64")],
    ["above the maximum size", "A".repeat(MAX_HEADER_BYTES + 4)],
  ])("A header %s is malformed", (_, header) => {
    expect(read(header, undefined)).toEqual({ malformed: expect.any(String) });
    expect(read(undefined, header)).toEqual({ malformed: expect.any(String) });
  });

  const other = withAuthorization({ nonce: `0x${"cd".repeat(32)}` });
  const accepted = { scheme: "exact", network: "eip155:8453" };
  test.each<[string, object | undefined, object | undefined, RegExp]>([
    ["two authorizations", V2, other, /contain different payments; send only one/],
    ["a payment in one header and another object in the other", V2, { x402Version: 1 }, /contain different payments/],
    ["two identifiers", id("the-first-identifier"), id("the-other-identifier"), /different payment identifiers/],
    [
      "version 1 with what version 2 accepted",
      undefined,
      { ...V1, accepted },
      /^X-PAYMENT .*x402Version 1.*"accepted"/,
    ],
    [
      "a scheme that was not accepted",
      { ...V2, scheme: "upto", accepted },
      undefined,
      /"upto".*accepted\.scheme "exact"/,
    ],
    [
      "a network that was not accepted",
      { ...V2, network: "base", accepted },
      undefined,
      /accepted\.network "eip155:8453"/,
    ],
    [
      "no version",
      { payload: PAYLOAD },
      undefined,
      /^PAYMENT-SIGNATURE .*x402Version missing; expected the number 1 or 2/,
    ],
  ])("The error names the contradiction: %s", (_, ...[signature, payment, reason]) => {
    expect(presented(signature, payment)).toEqual({ malformed: expect.stringMatching(reason) });
  });

  test("A header sent twice and JSON with a duplicate member are malformed", () => {
    const header = encode(V2);
    expect(read(`${header}, ${header}`)).toEqual({ malformed: expect.stringContaining("was sent more than once") });
    const twice = JSON.stringify(V2).replace("{", '{"x402Version":1,');
    expect(read(Buffer.from(twice).toString("base64"))).toEqual({
      malformed: expect.stringContaining("repeats a member of its JSON"),
    });
    const colons = JSON.stringify({ ...V2, "": ["a:b", { ":": '":' }], n: 1.5e3 }, null, 1);
    expect(read(Buffer.from(colons).toString("base64"))).toMatchObject({ version: "v2" });
  });

  test("Members that cannot be converted to text and JSON thousands of levels deep are reported as malformed", () => {
    const odd = withAuthorization({ value: { toString: 1, valueOf: 1 } });
    expect(presented(odd, odd)).toEqual({ malformed: expect.stringContaining("payload.authorization.value") });
    const deep = Buffer.from(`{"x402Version":2,"payload":${"[".repeat(4_500)}${"]".repeat(4_500)}}`).toString("base64");
    expect(read(deep, deep)).toEqual({ malformed: expect.stringContaining("more than 64 levels") });
    expect(presented({ ...V2, note: "[".repeat(100) })).toMatchObject({ version: "v2" });
  });

  test("The error names the field and never contains the signature", () => {
    const { malformed } = read(encode(withAuthorization({ nonce: "0x12" })), undefined) as {
      malformed: string;
    };
    expect(malformed).toContain("payload.authorization.nonce");
    expect(malformed.toLowerCase()).not.toContain("cd".repeat(32));
  });
});

describe("The base64 of a header", () => {
  /** Returns what the stock library decodes, or undefined if it rejects the text. */
  function stock(text: string): { readonly value: unknown } | undefined {
    try {
      return { value: decodePaymentSignatureHeader(text) };
    } catch {
      return undefined;
    }
  }

  test("Our encoding equals the stock library's and decodes to the same value", () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = encodePaymentRequiredHeader(value as never);
        expect(toBase64Json(value)).toBe(text);
        expect(decodeJson(text)).toMatchObject({ value: JSON.parse(JSON.stringify(value)) });
      }),
    ));

  test("Decoding accepts and rejects the same texts as the stock library, and also accepts the URL alphabet", () => {
    const json = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)));
    const bytes = fc.oneof(
      json,
      fc.uint8Array({ maxLength: 8 }).map((some) => Buffer.from(some)),
    );
    const text = fc.tuple(bytes, fc.constantFrom("", "=", "==", "===")).map(([some, padding]) => {
      const bare = some.toString("base64").replaceAll("=", "");
      return bare + padding;
    });
    const reads = (given: string) => {
      const expected = stock(given) ?? stock(given.replaceAll("-", "+").replaceAll("_", "/"));
      expect(decodeJson(given)).toMatchObject(expected ?? { malformed: "is not base64-encoded JSON" });
    };
    fc.assert(fc.property(fc.oneof(text, fc.string({ maxLength: 8 })), reads), { numRuns: 1_000 });
  });

  test.each<[string, string, unknown?]>([
    ["the alphabet of URLs", "Ij8_Pz4-fiI", "???>>~"],
    ["a line break", "MTIz\n"],
    ["a byte order mark", Buffer.from("\ufeff1").toString("base64"), 1],
    ["two byte order marks", Buffer.from("\ufeff\ufeff1").toString("base64")],
    ["bytes that are not UTF-8", Buffer.from([0x22, 0xff, 0xc3, 0x22]).toString("base64"), "\ufffd\ufffd"],
  ])("Decoding matches the stock library for %s", (_, text, value) => {
    const expected = value === undefined ? { malformed: "is not base64-encoded JSON" } : { value };
    expect(decodeJson(text)).toMatchObject(expected);
  });
});

const bytes = (text: string) => Buffer.from(text);
const print = (body: string | Uint8Array, query = "", { route = "score", method = "POST" } = {}) =>
  fingerprint({
    method,
    route,
    query: new URLSearchParams(query),
    body: typeof body === "string" ? bytes(body) : body,
  }).toString("hex");

/** Returns the same JSON value with the keys of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, shuffled(inner)]),
  );
}

describe("Equal fingerprints", () => {
  test("Key order and white space do not change the fingerprint", () =>
    expect(print('{"a":1,"b":{"c":[1,2],"d":null}}')).toBe(print(' { "b": {"d":null, "c":[1, 2]}, "a": 1.0 }')));

  test("Key order does not change the fingerprint of any JSON value", () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(print(JSON.stringify(value))).toBe(print(JSON.stringify(shuffled(value), null, 2)));
      }),
    ));

  test("The order of query parameters does not change the fingerprint", () =>
    expect(print("", "b=2&a=1&a=0")).toBe(print("", "a=0&a=1&b=2")));

  test("The encoding of a query character does not change the fingerprint", () =>
    expect(print("", "q=%20x")).toBe(print("", "q=+x")));
});

describe("Different fingerprints", () => {
  const base = print('{"a":1}', "q=1");
  test.each([
    ["a different value", print('{"a":2}', "q=1")],
    ["a different type", print('{"a":"1"}', "q=1")],
    ["a different key", print('{"b":1}', "q=1")],
    ["a different query value", print('{"a":1}', "q=2")],
    ["an additional query parameter", print('{"a":1}', "q=1&q=1")],
    ["no query", print('{"a":1}')],
    ["a different route", print('{"a":1}', "q=1", { route: "score.batch" })],
    ["a different method", print('{"a":1}', "q=1", { method: "GET" })],
    ["no body", print("", "q=1")],
    ["the body's text as a JSON string", print(JSON.stringify('{"a":1}'), "q=1")],
  ])("A request with %s has a different fingerprint", (_, other) => expect(other).not.toBe(base));

  test("Query values split at a different place have different fingerprints", () =>
    expect(print("", "a=1%26b%3D2")).not.toBe(print("", "a=1&b=2")));

  test("Lists in a different order have different fingerprints", () => expect(print("[1,2]")).not.toBe(print("[2,1]")));

  test("Non-JSON bodies that differ in one byte have different fingerprints", () =>
    expect(print(Buffer.from([0xff, 1]))).not.toBe(print(Buffer.from([0xff, 2]))));
});

describe("The JSON value of a body", () => {
  test.each<[string, Uint8Array, unknown]>([
    ["An empty body is null", bytes(""), null],
    ["An object is returned unchanged", bytes('{"a":[1]}'), { a: [1] }],
    ["Text that is not JSON is undefined", bytes("{a:1}"), undefined],
    ["Bytes that are not UTF-8 are undefined", Buffer.from([0x22, 0xff, 0x22]), undefined],
    ["Two values are undefined", bytes("{}{}"), undefined],
  ])("%s", (_, body, value) => expect(bodyJson(body)).toEqual(value));
});

describe("Values that the journal can store", () => {
  const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

  test.each<[string, unknown]>([
    ["null", null],
    ["a number", 1.5],
    ["any Unicode text", "é 😀 \u0001 \ud83d\ude00"],
    ["objects and lists", { a: [{ b: null }, "c"] }],
    ["64 levels", nested(64)],
  ])("The journal can store %s", (_, value) => expect(isStorable(value)).toBe(true));

  test.each<[string, unknown]>([
    ["U+0000", "a\u0000"],
    ["U+0000 in a name", { a: { "\u0000": 1 } }],
    ["half a surrogate pair", ["\ud83d"]],
    ["half a surrogate pair in a name", { "\ude00": 1 }],
    ["65 levels", nested(65)],
  ])("The journal cannot store %s", (_, value) => expect(isStorable(value)).toBe(false));
});
