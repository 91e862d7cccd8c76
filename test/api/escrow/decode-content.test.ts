import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeContent, MAX_DECODED_BYTES } from "../../../api/escrow/decode-content.ts";

const CODINGS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  gzip: gzipSync,
  "x-gzip": gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};
const NAMES = Object.keys(CODINGS);
const decode = (contentEncoding: string | null, body: Uint8Array) => decodeContent({ contentEncoding, body });
const code = (name: string, bytes: Uint8Array): Buffer => CODINGS[name]?.(bytes) ?? Buffer.alloc(0);

describe("the content of a delivery", () => {
  test("is what was coded, by any coding or two of them", async () => {
    const name = fc.constantFrom(...NAMES);
    const codings = fc.oneof(fc.tuple(name), fc.tuple(name, name));
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), codings, async (bytes, names) => {
        const body = names.reduce((content: Uint8Array, one) => code(one, content), bytes);
        const decoded = await decode(names.join(", ").toUpperCase(), body);
        expect(Buffer.from(decoded ?? []).equals(Buffer.from(bytes))).toBe(true);
        expect(decoded).not.toBeNull();
      }),
    );
  });

  test("is the body as it is without a coding, and when it is empty", async () => {
    const body = gzipSync("{}");
    expect(await decode(null, body)).toBe(body);
    expect(await decode("identity, ", body)).toBe(body);
    expect(await decode("gzip", new Uint8Array(0))).toHaveLength(0);
  });

  test("raw deflate is read as well", async () => {
    expect((await decode("deflate", deflateRawSync("An old silent pond")))?.toString()).toBe("An old silent pond");
  });

  test.each(NAMES)("%s: 4 MiB are decoded, one byte more is not, and a bomb never is", async (name) => {
    expect(await decode(name, code(name, Buffer.alloc(MAX_DECODED_BYTES)))).toHaveLength(MAX_DECODED_BYTES);
    expect(await decode(name, code(name, Buffer.alloc(MAX_DECODED_BYTES + 1)))).toBeNull();
    const bomb = code(name, Buffer.alloc(64 * 1024 * 1024));
    expect(bomb.length).toBeLessThan(256 * 1024);
    expect(await decode(name, bomb)).toBeNull();
    expect(await decode(`${name}, gzip`, gzipSync(bomb))).toBeNull();
  });

  test.each(NAMES)("%s: cut short or corrupt it is null", async (name) => {
    const body = code(name, Buffer.from(JSON.stringify(NAMES.join(" ").repeat(20))));
    expect(await decode(name, body.subarray(0, body.length - 6))).toBeNull();
    expect(await decode(name, Buffer.from("{}"))).toBeNull();
  });

  test.each(["compress", "gzip, gzip, gzip", "aes128gcm", "toString"])("%s is null", async (coding) => {
    expect(await decode(coding, gzipSync(gzipSync(gzipSync("{}"))))).toBeNull();
  });
});
