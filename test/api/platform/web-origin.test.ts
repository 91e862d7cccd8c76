import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseOrigin } from "../../../api/platform/web/target.ts";

describe("an origin", () => {
  test.each([
    ["https://shop.example", "https://shop.example"],
    ["https://shop.example/", "https://shop.example"],
    ["HTTPS://Shop.EXAMPLE", "https://shop.example"],
    ["https://shop.example:443", "https://shop.example"],
    ["http://shop.example:80/", "http://shop.example"],
    ["https://shop.example:8443", "https://shop.example:8443"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
    ["https://BÜCHER.example", "https://xn--bcher-kva.example"],
    ["https://sh\u00adop.example", "https://shop.example"],
    ["http://localhost:3000", "http://localhost:3000"],
    ["http://[::1]:3000", "http://[::1]:3000"],
  ])("%j has one form: %s", (text, origin) => expect(parseOrigin(text)).toEqual({ origin }));

  test.each([
    ["", "is empty; expected one like https://shop.example"],
    ["https://shop.example/haiku", "names more than an origin; expected https://shop.example"],
    ["https://shop.example:443/haiku?x=1", "names more than an origin; expected https://shop.example"],
    ["https://shop.example?x=1", "names more than an origin; expected https://shop.example"],
    ["https://shop.example/#top", "names more than an origin; expected https://shop.example"],
    ["https://bücher.example/a", "names more than an origin; expected https://xn--bcher-kva.example"],
    ["shop.example", "has no scheme; expected https://shop.example"],
    ["shop.example:8443", "has no scheme; expected https://shop.example:8443"],
    ["https://shop.example.", "ends in a dot; expected https://shop.example"],
    ["https://shop.example..", "ends in a dot; expected https://shop.example"],
    ["https://.", "ends in a dot; expected one like https://shop.example"],
    ["https://%2e:8443", "ends in a dot; expected one like https://shop.example"],
    ["https://./haiku", "names more than an origin; expected one like https://shop.example"],
    [".", "has no scheme; expected one like https://shop.example"],
    ["shop.example.", "has no scheme; expected https://shop.example"],
    ["https://shop.example.:8443", "ends in a dot; expected https://shop.example:8443"],
    ["https://user@shop.example", "is not an origin; expected one like https://shop.example"],
    ["https:\\\\shop.example", "is not an origin; expected one like https://shop.example"],
    ["https:shop.example", "is not an origin; expected one like https://shop.example"],
    ["ftp://shop.example", "is not an origin; expected one like https://shop.example"],
    ["javascript://shop.example", "is not an origin; expected one like https://shop.example"],
    ["https://shop.example:99999", "is not an origin; expected one like https://shop.example"],
    [" https://shop.example", "is not an origin; expected one like https://shop.example"],
    ["https://sh\top.example", "is not an origin; expected one like https://shop.example"],
    ["null", "has no scheme; expected https://null"],
    [`https://${"a".repeat(800)}`, "has 808 characters; expected one like https://shop.example"],
  ])("%j is refused with what would be right: %s", (text, refused) => expect(parseOrigin(text)).toEqual({ refused }));

  test("is its own form, whatever was accepted", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.webUrl(),
          fc.string(),
          fc.domain().map((name) => `https://${name}`),
        ),
        (text) => {
          const parsed = parseOrigin(text);
          if ("refused" in parsed) return;
          expect(parseOrigin(parsed.origin)).toEqual(parsed);
          expect(new URL(parsed.origin).origin).toBe(parsed.origin);
          expect(parsed.origin).toMatch(/^https?:\/\/[\x21-\x7e]+$/);
        },
      ),
    );
  });
});
