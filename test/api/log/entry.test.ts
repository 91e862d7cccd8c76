import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createDocuments, entryBytes } from "../../../api/log/entry.ts";
import { createSigner, jcs } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { MAX_ENTRY_BYTES } from "../../../packages/verifier/src/tlog/bundle.ts";
import { parseEntry } from "../../../packages/verifier/src/tlog/entry.ts";

const signer = createSigner(await signingKey(Buffer.alloc(32, 8)), "did:web:trust.example");
const documentOf = createDocuments({ signer, baseUrl: "https://trust.example" });
const proof = (document: unknown) =>
  documentOf({
    type: "proof",
    ref: "00000000000000a1",
    at: new Date(0),
    recorded: { type: "proof", document, publishedAt: new Date(0) },
  });

// What programs read differently, or break lines at, or cannot store.
const CHARACTERS = [
  "a",
  "\u0000",
  "\u001f",
  "\u007f",
  "\u2028",
  "\u2029",
  "\ufeff",
  "\u202e",
  "é",
  "e\u0301",
  "😀",
  "\uffff",
];
const TEXT = fc.string({ unit: fc.constantFrom(...CHARACTERS, '"', "\\") });
/** Without a name that is a backslash: where it has seen one, V8's `JSON.parse` takes any escaped name for it. */
const NAME = fc.string({ unit: fc.constantFrom(...CHARACTERS) });
const NUMBER = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(2 ** 53, -(2 ** 53), 1e21, 5e-324, -0),
);
const VALUE = fc.oneof(TEXT, NUMBER, fc.boolean(), fc.constant(null));
const DOCUMENT = fc.dictionary(NAME, fc.oneof(VALUE, fc.array(VALUE), fc.dictionary(NAME, VALUE)), {
  noNullPrototype: true,
});

describe("an entry", () => {
  test("is read as it was written, whatever characters and numbers are in its document", async () => {
    const property = fc.asyncProperty(DOCUMENT, fc.nat(), async (document, index) => {
      const content = await proof(document);
      const bytes = entryBytes(content, index);
      const entry = parseEntry(bytes);
      expect(entry).toMatchObject({ index, type: "proof", id: content.id });
      expect("document" in entry.content && jcs(entry.content.document)).toBe(content.document);
      expect(bytes.includes("\n")).toBe(false);
    });
    await fc.assert(property, { numRuns: 200 });
  });

  test.each([{ a: "\ud800" }, { "\udc00": 1 }, [["\ud83d"]]])(
    "of %j, which has no UTF-8 form, is not made",
    async (document) => {
      await expect(proof(document)).rejects.toThrow(/urrogate/);
    },
  );

  test("is at most as long as a bundle's length can say", () => {
    const of = (length: number) => ({
      type: "policy" as const,
      id: "1",
      document: `"${"x".repeat(length)}"`,
      url: null,
    });
    const rest = entryBytes(of(0), 0).length;
    expect(entryBytes(of(MAX_ENTRY_BYTES - rest), 0)).toHaveLength(MAX_ENTRY_BYTES);
    expect(() => entryBytes(of(MAX_ENTRY_BYTES - rest + 1), 0)).toThrow(/has 65536 bytes, more than 65535/);
  });
});
