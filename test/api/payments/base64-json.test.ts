import { decodePaymentSignatureHeader, encodePaymentRequiredHeader } from "@x402/core/http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { fromBase64Json, toBase64Json } from "../../../api/payments/base64-json.ts";

/** What it returns, or that it throws. */
const outcome = (decode: (text: string) => unknown, text: string): unknown => {
  try {
    return { read: decode(text) };
  } catch {
    return "refused";
  }
};
const same = (text: string): void => {
  expect(outcome(fromBase64Json, text)).toEqual(outcome(decodePaymentSignatureHeader, text));
};

test("what the stock library writes is written so and read back", () =>
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = encodePaymentRequiredHeader(value as never);
      expect(toBase64Json(value)).toBe(text);
      expect(fromBase64Json(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  ));

test("what it reads is read, and what it refuses is refused", () => {
  const json = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)));
  const bytes = fc.oneof(
    json,
    fc.uint8Array({ maxLength: 8 }).map((some) => Buffer.from(some)),
  );
  const text = fc.tuple(bytes, fc.constantFrom("", "=", "==", "===")).map(([some, padding]) => {
    const bare = some.toString("base64").replaceAll("=", "");
    return bare + padding;
  });
  fc.assert(fc.property(fc.oneof(text, fc.string({ maxLength: 8 })), same), { numRuns: 1_000 });
});

test.each<[string, string]>([
  ["nothing", ""],
  ["padding alone", "="],
  ["two paddings alone", "=="],
  ["one letter too many", "MQAAA"],
  ["no padding", "MTI"],
  ["too little padding", "MQ="],
  ["too much padding", "MTI=="],
  ["padding after a whole group", "MTIz="],
  ["the alphabet of URLs", "-_-_"],
  ["a line break", "MTIz\n"],
  ["a byte order mark", Buffer.from("\ufeff1").toString("base64")],
  ["bytes that are no UTF-8", Buffer.from([0x22, 0xff, 0xc3, 0x22]).toString("base64")],
  ["bits beyond the last byte", "MTJ="],
])("so it is with %s", (_, text) => same(text));
