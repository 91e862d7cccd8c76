import canonicalize from "canonicalize";
import canonicalizeAsPacked from "canonicalize-4";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { forge, HEADER } from "./forge.ts";
import { CREDENTIAL, KEYS, SAMPLE_NOW, SIGNED_CREDENTIAL, SIGNED_VERDICT, SIGNER } from "./samples.ts";

const DOCUMENTS = [
  { kind: "credential", document: SIGNED_CREDENTIAL },
  { kind: "verdict", document: SIGNED_VERDICT },
];
const CONTEXT = ["https://www.w3.org/ns/credentials/v2"];
const verify = (text: string) => verifyDocument(text, { keys: KEYS, at: SAMPLE_NOW });

describe.each(DOCUMENTS)("a signed $kind", ({ document }) => {
  test("It is written in canonical order, with its proof in canonical place", () => {
    expect(JSON.stringify(document)).toBe(canonicalize(document));
  });

  test("It is refused with any one member repeated, at any depth and with the same value", async () => {
    let members = 0;
    /** The text with the member of this number repeated. */
    const twice = (which: number): string => {
      members = 0;
      const written = (value: unknown): string => {
        if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
        if (typeof value !== "object" || value === null) return JSON.stringify(value);
        const texts = Object.entries(value).flatMap(([name, part]) => {
          const again = members++ === which ? 2 : 1;
          return Array.from({ length: again }).fill(`${JSON.stringify(name)}:${written(part)}`);
        });
        return `{${texts.join(",")}}`;
      };
      return written(document);
    };
    expect(twice(-1)).toBe(JSON.stringify(document));
    for (let which = members - 1; which >= 0; which--)
      expect(await verify(twice(which))).toMatchObject({ signature: { code: "duplicate_key" } });
  });
});

test.each([
  ["whole numbers, which sort as text but are stored as numbers", '{"10":1,"9":2}', '{"9":2,"10":1}'],
  ["__proto__", '{"__proto__":{"a":1},"a":2}', '{"a":2,"__proto__":{"a":1}}'],
  ["toJSON", '{"a":1,"toJSON":{}}', '{"toJSON":{},"a":1}'],
  ["an empty name", '{"":1,"a":2}', '{"a":2,"":1}'],
  // U+1F600 is encoded as D83D DE00 and so sorts before U+FB33.
  ["code units against code points", '{"\u{1f600}":1,"\ufb33":2}', '{"\ufb33":2,"\u{1f600}":1}'],
])("A document whose members are named like %s is valid in canonical and in any other order", async (_, ...orders) => {
  for (const content of orders) {
    const signed = await SIGNER.sign({ "@context": CONTEXT, content: JSON.parse(content) }, SAMPLE_NOW);
    expect(await verify(JSON.stringify(signed))).toMatchObject({ valid: true });
    expect(await verify(canonicalize(signed) ?? "")).toMatchObject({ valid: true });
  }
});

test.each([
  ["in reverse order", `{"kid":"${HEADER.kid}","alg":"EdDSA"}`],
  ["with spaces", `{ "alg": "EdDSA", "kid": "${HEADER.kid}" }`],
  ["with escapes", `{"\\u0061lg":"EdDSA","kid":"${HEADER.kid}"}`],
])("A jws header written %s verifies", async (_, header) => {
  expect(await verify(JSON.stringify(forge({ document: CREDENTIAL, header })))).toMatchObject({ valid: true });
});

test("The packages' canonicalize writes the same as the service's", () => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => canonicalizeAsPacked(value) === canonicalize(value)));
});
