import fc from "fast-check";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { prefers } from "../../../api/platform/http/accept.ts";
import { Problem } from "../../../api/platform/http/errors.ts";
import { MAX_BODY_BYTES, readJson } from "../../../api/platform/http/request.ts";
import { foreignLine, foreignLines } from "../../../api/platform/page/html.ts";
import { readWallet } from "../../../api/platform/wallet.ts";
import { parseOrigin } from "../../../api/platform/web/target.ts";

const CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const wallet = CHECKSUMMED.toLowerCase();
const digits = CHECKSUMMED.slice(2);

test.each([
  CHECKSUMMED,
  wallet,
  `0x${digits.toUpperCase()}`,
  `eip155:8453:${CHECKSUMMED}`,
  `did:pkh:eip155:8453:${wallet}`,
])("%s is read as a wallet", (text) => expect(readWallet(text)).toEqual({ wallet }));

test.each<[string, RegExp]>([
  [CHECKSUMMED.replace("aA", "Aa"), /checksum/],
  [`eip155:8453:${CHECKSUMMED.replace("7Ef", "7ef")}`, /checksum/],
  [`did:pkh:eip155:8453:${CHECKSUMMED.replace("aAe", "aae")}`, /checksum/],
  [`eip155:1:${wallet}`, /on eip155:8453; this one is on eip155:1/],
  [`did:pkh:eip155:84532:${wallet}`, /this one is on eip155:84532/],
  [`did:pkh:${wallet}`, /0x and 40 hex digits/],
  [`did:web:example.com`, /0x and 40 hex digits/],
  [wallet.slice(0, -1), /0x and 40 hex digits/],
  ["", /0x and 40 hex digits/],
])("%j is refused as a wallet with the reason", (text, why) =>
  expect(readWallet(text)).toEqual({ malformed: expect.stringMatching(why) }),
);

describe("The Accept header", () => {
  test.each<[accept: string | undefined, isPage: boolean]>([
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true],
    ["text/html", true],
    ["text/*", true],
    ["text/html;q=0.9, application/json;q=0.8", true],
    ["application/json;q=0, */*", true],
    ["application/json, text/html;q=0.9", false],
    ["text/html;q=0.5, application/json", false],
    ["text/html;q=0, */*", false],
    ["application/json, text/plain, */*", false],
    ["*/*", false],
    ["", false],
    [undefined, false],
  ])("%j prefers a page: %s", (accept, isPage) =>
    expect(prefers(accept, "text/html", "application/json")).toBe(isPage),
  );
});

describe("Request bodies", () => {
  const app = new Hono()
    .post("/", async (c) => c.json(await readJson(c, z.object({ name: z.string() }), "The body has a name.")))
    .onError((error, c) => (error instanceof Problem ? c.text(error.code) : c.text("our fault")));
  const post = async (body: RequestInit["body"]) =>
    (await app.request("/", { method: "POST", body, duplex: "half" } as RequestInit)).text();
  const bytes = (...parts: readonly (string | number)[]) =>
    new Uint8Array(
      Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part])))),
    );

  test("A JSON body is parsed", async () => {
    expect(await post('{"name":"Zoë 🌧"}')).toBe('{"name":"Zoë 🌧"}');
  });

  test.each([
    ["An empty body", ""],
    ["A truncated body", '{"name":'],
    ["A body of another shape", '["name"]'],
    ["A body that is not UTF-8", bytes('{"name":"Zo', 0xeb, '"}')],
    ["A body nested as deeply as its size allows", "[".repeat(MAX_BODY_BYTES)],
  ])("%s is reported as the caller's mistake", async (_, body) => {
    expect(await post(body)).toBe("malformed_request");
  });

  test("A body without a declared length is read up to the limit", async () => {
    const stream = (size: number) => new Blob([" ".repeat(size), '{"name":"x"}']).stream();
    expect(await post(stream(MAX_BODY_BYTES - 12))).toBe('{"name":"x"}');
    expect(await post(stream(MAX_BODY_BYTES - 11))).toBe("body_too_large");
  });
});

describe("Untrusted text", () => {
  const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

  test.each([
    ["a plain line", "a plain line"],
    ["evil\u202egnp.exe", "evil\\u{202e}gnp.exe"],
    ["zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"],
    ["a\r\nforged: header", "a\\u{d}\\u{a}forged: header"],
    ["half \ud800 character", "half \\u{d800} character"],
    ["Größe 価格 ☕", "Größe 価格 ☕"],
    [`Z${"\u0301".repeat(50)}algo`, "Z\u0301\u0301algo"],
  ])("%j is shown as %j", (text, shown) => expect(foreignLine(text, 100)).toBe(shown));

  test("Line breaks are kept in multi-line text", () =>
    expect(foreignLines("one\r\ntwo\tthree\n\u2028four", 100)).toBe("one\ntwo\tthree\n\\u{2028}four"));

  test("Any untrusted text is shown without invisible characters and within the length limit", () => {
    const hostile = fc.string({ unit: "binary", maxLength: 300 });
    fc.assert(
      fc.property(hostile, fc.integer({ min: 1, max: 120 }), (text, most) => {
        const shown = foreignLine(text, most);
        expect(UNSEEN.test(shown)).toBe(false);
        expect(shown.length).toBeLessThanOrEqual(most + 1);
        expect(shown.isWellFormed()).toBe(true);
        expect(foreignLines(text, most).replace(/[\n\t]/g, "")).not.toMatch(UNSEEN);
      }),
    );
  });
});

describe("Origins", () => {
  describe("Parsing", () => {
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
    ])("%j is normalized to %s", (text, origin) => expect(parseOrigin(text)).toEqual({ origin }));

    test.each([
      ["", "is empty; expected one like https://shop.example"],
      ["https://shop.example/haiku", "names more than an origin; expected https://shop.example"],
      ["https://bücher.example/a", "names more than an origin; expected https://xn--bcher-kva.example"],
      ["shop.example", "has no scheme; expected https://shop.example"],
      ["https://shop.example.", "ends in a dot; expected https://shop.example"],
      ["https://.", "ends in a dot; expected one like https://shop.example"],
      ["https://%2e:8443", "ends in a dot; expected one like https://shop.example"],
      ["https://user@shop.example", "is not an origin; expected one like https://shop.example"],
      ["https:\\\\shop.example", "is not an origin; expected one like https://shop.example"],
      ["ftp://shop.example", "is not an origin; expected one like https://shop.example"],
      ["https://shop.example:99999", "is not an origin; expected one like https://shop.example"],
      [" https://shop.example", "is not an origin; expected one like https://shop.example"],
      ["https://sh\top.example", "is not an origin; expected one like https://shop.example"],
      [`https://${"a".repeat(800)}`, "has 808 characters; expected one like https://shop.example"],
    ])("%j is refused with a correction: %s", (text, refused) => expect(parseOrigin(text)).toEqual({ refused }));

    test("A normalized origin is unchanged by parsing it again", () => {
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
});
