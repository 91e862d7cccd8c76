import { expect, test } from "vitest";
import { isSharedStorable } from "../../../packages/seller-check/src/exam/shared-cache.ts";

const url = "https://seller.example/haiku";
const storable = (headers: Record<string, string>, method = "GET", status = 200) =>
  isSharedStorable({ url, method }, { status, headers, body: new Uint8Array() }, ["payment-signature"]);
const control = (text: string) => ({ "cache-control": text });

test.each<[Record<string, string>, boolean]>([
  [{}, true],
  [control("no-store"), false],
  [control("NO-STORE"), false],
  [control("private"), false],
  [control("Private, max-age=60"), false],
  [control("no-cache"), false],
  [control("public"), true],
  [control("max-age=60"), true],
  [control("s-maxage=60"), true],
  // Qualified forms restrict the fields that they name, and no more.
  [control('private="set-cookie"'), true],
  [control('no-cache="set-cookie"'), true],
  [control('no-cache="set-cookie, no-store, x"'), true],
  [control('private="set-cookie", private'), false],
  [control('private="set-cookie", no-store'), false],
  [control('private="unterminated, no-store'), true],
  [control('private="a \\" b", no-store'), false],
  // Several lines arrive as one list.
  [control("public, max-age=60, no-store"), false],
  [control("max-age=60, private"), false],
  [control("x-private, not-no-store"), true],
  [control("no-store=1"), false],
  // Kept for no time, and never given without asking.
  [control("s-maxage=0"), false],
  [control("s-maxage=0, max-age=60"), false],
  [control("s-maxage=0, stale-while-revalidate=60"), true],
  [control("max-age=0"), true],
  [control("max-age=0, must-revalidate"), false],
  [control("public, max-age=0, proxy-revalidate"), false],
  [control("max-age=0, must-revalidate, s-maxage=60"), true],
  [control("max-age=never, must-revalidate"), true],
  // A cache that understands the status ignores no-store beside must-understand.
  [control("no-store, must-understand"), true],
  [control("no-store, must-understand, max-age=60"), true],
  [control("no-store, must-understand, private"), false],
  // Pragma and Expires.
  [{ pragma: "no-cache" }, true],
  [{ expires: "0" }, true],
  [{ expires: "0", ...control("private") }, false],
  // An answer that varies with the payment is for nobody else.
  [{ vary: "*", ...control("public, max-age=60") }, false],
  [{ vary: "Accept, PAYMENT-SIGNATURE", ...control("public, max-age=60") }, false],
  [{ vary: "Accept, Authorization", ...control("public, max-age=60") }, true],
  // What only some caches obey, instead of Cache-Control.
  [{ "cdn-cache-control": "max-age=60", ...control("no-store") }, true],
  [{ "cdn-cache-control": "no-store", ...control("no-store") }, false],
  [{ "cdn-cache-control": "no-store" }, true],
  [{ "cloudflare-cdn-cache-control": "max-age=60", ...control("private") }, true],
  [{ "surrogate-control": "max-age=60", ...control("private") }, true],
  [{ "surrogate-control": 'content="ESI/1.0"', ...control("private") }, false],
  [{ "x-accel-expires": "60", ...control("no-store") }, true],
  [{ "x-accel-expires": "0", ...control("no-store") }, false],
])("a shared cache may store a paid answer to GET with %j: %s", (headers, isStorable) => {
  expect(storable(headers)).toBe(isStorable);
});

test.each<[readonly [string, number], Record<string, string>, boolean]>([
  [["GET", 201], {}, false],
  [["GET", 202], {}, false],
  [["GET", 202], control("max-age=60"), true],
  [["GET", 201], control("no-store, must-understand, max-age=60"), true],
  [["POST", 200], {}, false],
  [["POST", 200], control("public, max-age=60"), false],
  [["POST", 200], { ...control("public, max-age=60"), "content-location": "/haiku" }, true],
  [["POST", 200], { ...control("public, max-age=60"), "content-location": "/other" }, false],
  [["POST", 200], { ...control("no-store"), "content-location": url }, false],
  [["POST", 200], { "content-location": url }, false],
  [["PUT", 200], { ...control("public, max-age=60"), "content-location": url }, false],
])("a shared cache may store the answer %j with %j: %s", ([method, status], headers, isStorable) => {
  expect(storable(headers, method, status)).toBe(isStorable);
});
