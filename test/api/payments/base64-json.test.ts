import { decodePaymentSignatureHeader, encodePaymentRequiredHeader } from "@x402/core/http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { toBase64Json } from "../../../api/payments/header.ts";
import { decodeJson } from "../../../packages/escrow/src/envelope.ts";

/** What the stock library reads; undefined for what it refuses. */
function stock(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: decodePaymentSignatureHeader(text) };
  } catch {
    return undefined;
  }
}

test("what the stock library writes is written so and read back", () =>
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = encodePaymentRequiredHeader(value as never);
      expect(toBase64Json(value)).toBe(text);
      expect(decodeJson(text)).toMatchObject({ value: JSON.parse(JSON.stringify(value)) });
    }),
  ));

test("whatever it reads is read the same, and nothing that is not JSON in base64 is read at all", () => {
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
  ["bytes that are no UTF-8", Buffer.from([0x22, 0xff, 0xc3, 0x22]).toString("base64"), "\ufffd\ufffd"],
])("so it is with %s", (_, text, value) => {
  const expected = value === undefined ? { malformed: "is not base64-encoded JSON" } : { value };
  expect(decodeJson(text)).toMatchObject(expected);
});
