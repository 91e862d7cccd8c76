import { expect, test } from "vitest";
import { namedRoute } from "../../../packages/seller-check/src/exam/named-route.ts";

const RESOURCE = { url: "https://seller.example/haiku?style=old", method: "GET", body: null, contentType: "a/b" };

test.each([
  ["/sonnet", "https://seller.example/sonnet"],
  ["/sonnet?style=old#third-line", "https://seller.example/sonnet?style=old"],
  ["https://seller.example/sonnet", "https://seller.example/sonnet"],
  ["HTTPS://SELLER.example:443/sonnet", "https://seller.example/sonnet"],
  ["/haiku/sonnet", "https://seller.example/haiku/sonnet"],
  ["/haiku/../sonnet", "https://seller.example/sonnet"],
  ["/%zz", "https://seller.example/%zz"],
])("%s is another route of the seller", (text, url) => {
  expect(namedRoute(text, RESOURCE)).toEqual({ url, method: "GET", body: null });
});

test("is asked like the resource itself", () => {
  const posted = { ...RESOURCE, method: "POST", body: "{}" };
  expect(namedRoute("/sonnet", posted)).toEqual({ url: "https://seller.example/sonnet", method: "POST", body: "{}" });
});

test.each([
  ["", /expected a path/],
  ["sonnet", /expected a path/],
  ["javascript:alert(1)", /expected a path/],
  ["file:///etc/passwd", /expected a path/],
  ["https://", /expected a path/],
  ["http://seller.example/sonnet", /is at http:\/\/seller\.example; expected another URL of https/],
  ["https://seller.example:444/sonnet", /is at https:\/\/seller\.example:444/],
  ["https://seller.example.evil.example/sonnet", /is at /],
  ["//evil.example/sonnet", /is at https:\/\/evil\.example/],
  ["/\\evil.example/sonnet", /is at https:\/\/evil\.example/],
  ["https://seller.example@evil.example/sonnet", /is at https:\/\/evil\.example/],
  ["https://me:secret@seller.example/sonnet", /credentials/],
  ["/haiku", /the request itself/],
  ["/haiku?another", /the request itself/],
  ["/HAIKU/", /the request itself/],
  ["//seller.example//haiku", /the request itself/],
  ["/h%61iku", /the request itself/],
  ["/haiku;jsessionid=1", /the request itself/],
  ["/sonnet/../haiku", /the request itself/],
  [`/${"s".repeat(2_048)}`, /2048 characters/],
])("%s is none", (text, reason) => {
  expect(namedRoute(text, RESOURCE)).toMatch(reason);
});
