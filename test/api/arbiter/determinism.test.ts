import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FETCH_LIMITS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import { jcs } from "../../../api/platform/signing/document.ts";
import { createSearch, measureBody } from "../../../api/platform/web/guarded-fetch/body.ts";
import { examine, type Site, startSite } from "../../support/arbiter/site.ts";

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Cuts the bytes into pieces of the given sizes, repeating the sizes. */
function* pieces(bytes: Uint8Array, sizes: readonly number[]): Generator<Uint8Array> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });

describe("body in pieces", () => {
  test("A text is found in the pieces exactly when the whole body contains it", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "é", "\u{1f600}"), maxLength: 60 });
    const needle = fc.string({ unit: fc.constantFrom("a", "b", "é", "\u{1f600}"), minLength: 1, maxLength: 4 });
    let hits = 0;
    fc.assert(
      fc.property(letters, needle, sizes, (whole, text, cuts) => {
        const search = createSearch(text);
        for (const piece of pieces(Buffer.from(whole), cuts)) search.add(piece);
        hits += Number(whole.includes(text));
        expect(search.found()).toBe(whole.includes(text));
      }),
      { numRuns: 2_000 },
    );
    expect(hits).toBeGreaterThan(100);
  });

  test("The measurements are the same however the body is split and encoded", async () => {
    const codings = [
      ["", (bytes: Uint8Array) => bytes],
      ["gzip", gzipSync],
      ["deflate", deflateSync],
      ["gzip, br", (bytes: Uint8Array) => brotliCompressSync(gzipSync(bytes))],
    ] as const;
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        sizes,
        fc.constantFrom(...codings),
        async (bytes, cuts, [coding, encode]) => {
          const sent = encode(bytes);
          const body = await measureBody(Readable.from(pieces(sent, cuts)), {
            contentEncoding: coding,
            contains: null,
            limits: FETCH_LIMITS_V1,
          });
          expect(body.received).toEqual({ bytes: sent.length, sha256: sha256(sent) });
          expect(body.decoded).toEqual({ bytes: bytes.length, sha256: sha256(bytes), contains: null });
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("facts of an http-delivery", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
    let count = 0;
    // These headers vary from response to response and are not part of the deliverable.
    const vary = () => ({
      date: new Date(1e12 + 1e7 * count).toUTCString(),
      "x-request-id": String(++count),
      "set-cookie": `a=${count}`,
    });
    site.handlers.set("/fine", (_request, response) =>
      response.writeHead(200, { ...vary(), "content-type": "text/plain" }).end("fine"),
    );
    site.handlers.set("/gone", (_request, response) =>
      response.writeHead(404, vary()).end(`not found, request ${count}`),
    );
    site.handlers.set("/busy", (_request, response) => response.writeHead(503, vary()).end(`busy ${count}`));
    site.handlers.set("/moved", (_request, response) =>
      response.writeHead(302, { location: `/fine?signature=${++count}` }).end(),
    );
  });
  afterAll(() => site.close());

  test.each(["/fine", "/gone", "/busy", "/moved", "/nothing"])(
    "%s: the same claim and state yield the same bytes, in any order of conditions",
    async (path) => {
      const conditions = {
        url: `http://shop.example${path}`,
        expect_status: 200,
        min_bytes: 2,
        expect_contains: "in",
        expect_sha256: sha256(Buffer.from("fine")),
      };
      const turned = Object.fromEntries(Object.entries(conditions).reverse());
      const fetcher = site.fetcher();
      const [one, other] = [
        await examine("http-delivery", conditions, { fetcher }),
        await examine("http-delivery", turned, { fetcher }),
      ];
      expect(jcs(other.facts)).toBe(jcs(one.facts));
      expect(other.verdict).toBe(one.verdict);
      expect(jcs(one.facts)).not.toMatch(/\d{4}-\d\d-\d\dT/);
      expect(one.timeline[0]?.started_at).toMatch(/^\d{4}-\d\d-\d\dT/);
    },
  );

  test("Facts contain no content of the deliverable, and all their numbers are safe integers", async () => {
    const evidence = await examine(
      "http-delivery",
      { url: "http://shop.example/fine", expect_contains: "in" },
      { fetcher: site.fetcher() },
    );
    expect(evidence.facts).toEqual([
      {
        fact: "fetch_attempt",
        attempt: 1,
        url: "http://shop.example/fine",
        redirects: [],
        status: 200,
        content_type: "text/plain",
        content_encoding: null,
        challenge: null,
        request_headers: { accept: "*/*", "accept-encoding": "identity", connection: "close", "user-agent": "test" },
        received: { bytes: 4, sha256: sha256(Buffer.from("fine")) },
        decoded: { bytes: 4, sha256: sha256(Buffer.from("fine")) },
        contains: true,
        failure: null,
      },
      { fact: "condition", condition: "status", expected: "2xx", observed: 200, result: "true", reason: "match" },
      {
        fact: "condition",
        condition: "expect_contains",
        expected: "in",
        observed: true,
        result: "true",
        reason: "match",
      },
    ]);
  });
});
