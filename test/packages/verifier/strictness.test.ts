import { describe, expect, test } from "vitest";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { FORGERIES, forge, GOOD, NAMED_TWICE, NOT_STRICT } from "./forge.ts";
import { BASE_URL, CREDENTIAL, ISSUER, KEYS, SAMPLE_NOW, STRANGER } from "./samples.ts";

const AT = { keys: KEYS, at: SAMPLE_NOW };
const verify = (source: string | Uint8Array, issuer?: string) => verifyDocument(source, { ...AT, issuer });

async function expectRefused(source: string | Uint8Array, code: string, issuer?: string): Promise<void> {
  expect(await verify(source, issuer)).toEqual({
    valid: false,
    signature: { valid: false, code, reason: expect.stringMatching(/^[\x20-\x7e]{10,}$/) },
    freshness: { state: "unknown" },
    document: null,
  });
}

test("The document that every case below is derived from is valid", async () => {
  for (const issuer of [undefined, BASE_URL, ISSUER])
    expect(await verify(GOOD, issuer)).toMatchObject({ valid: true, signature: { valid: true, issuer: ISSUER } });
});

describe("text that programs could read differently", () => {
  test.each(NOT_STRICT)("A text with %s is refused", (_, source) => expectRefused(source, "malformed_json"));

  test.each(NAMED_TWICE)("A text with a duplicate member %s is refused", (_, source) =>
    expectRefused(source, "duplicate_key"),
  );
});

describe("a malformed proof", () => {
  test.each(FORGERIES)("It is refused as %s for %s", (code, _, forgery) =>
    expectRefused(JSON.stringify(forge(forgery)), code),
  );
});

describe("a refused document", () => {
  test.each(["[]", "null", '"text"', "1"])("The document %s is refused", (text) =>
    expectRefused(text, "malformed_document"),
  );

  test("A document without a proof is refused", () => expectRefused(JSON.stringify(CREDENTIAL), "malformed_document"));

  test.each([[[forge().proof]], ["text"], [null], [[]]])("A document with the proof %j is refused", (proof) =>
    expectRefused(JSON.stringify({ ...forge(), proof }), "malformed_proof"),
  );

  test("A document that another key signed is refused, even if it names that key", async () => {
    const { kid } = STRANGER.publicJwk;
    const options = { verificationMethod: `${ISSUER}#${kid}` };
    const strange = forge({ header: { alg: "EdDSA", kid }, options, jwsKey: STRANGER, valueKey: STRANGER });
    await expectRefused(JSON.stringify(strange), "unknown_key");
  });

  test.each(["constructor", "__proto__", "toString"])(
    "A document with the key id %s, which every object has, is refused",
    (kid) => {
      const options = { verificationMethod: `${ISSUER}#${kid}` };
      return expectRefused(JSON.stringify(forge({ header: { alg: "EdDSA", kid }, options })), "unknown_key");
    },
  );

  test.each(["https://other.example", "did:web:trust.example%3A8443", "http://localhost:4020"])(
    "A document is refused if the expected issuer is %s",
    (issuer) => expectRefused(GOOD, "issuer_mismatch", issuer),
  );
});
