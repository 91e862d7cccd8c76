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

test("the document that every case below departs from is valid", async () => {
  for (const issuer of [undefined, BASE_URL, ISSUER])
    expect(await verify(GOOD, issuer)).toMatchObject({ valid: true, signature: { valid: true, issuer: ISSUER } });
});

describe("text that programs could read differently is refused", () => {
  test.each(NOT_STRICT)("%s", (_, source) => expectRefused(source, "malformed_json"));

  test.each(NAMED_TWICE)("a member named twice %s", (_, source) => expectRefused(source, "duplicate_key"));
});

describe("a proof is refused for", () => {
  test.each(FORGERIES)("%s: %s", (code, _, forgery) => expectRefused(JSON.stringify(forge(forgery)), code));
});

describe("a document is refused", () => {
  test.each(["[]", "null", '"text"', "1"])("that is %s", (text) => expectRefused(text, "malformed_document"));

  test("without a proof", () => expectRefused(JSON.stringify(CREDENTIAL), "malformed_document"));

  test.each([[[forge().proof]], ["text"], [null], [[]]])("with the proof %j", (proof) =>
    expectRefused(JSON.stringify({ ...forge(), proof }), "malformed_proof"),
  );

  test("that another key signed, even one that names itself correctly", async () => {
    const { kid } = STRANGER.publicJwk;
    const options = { verificationMethod: `${ISSUER}#${kid}` };
    const strange = forge({ header: { alg: "EdDSA", kid }, options, jwsKey: STRANGER, valueKey: STRANGER });
    await expectRefused(JSON.stringify(strange), "unknown_key");
  });

  test.each(["constructor", "__proto__", "toString"])("whose key id is %s, a name that objects have", (kid) => {
    const options = { verificationMethod: `${ISSUER}#${kid}` };
    return expectRefused(JSON.stringify(forge({ header: { alg: "EdDSA", kid }, options })), "unknown_key");
  });

  test.each(["https://other.example", "did:web:trust.example%3A8443", "http://localhost:4020"])(
    "that comes from another issuer than %s",
    (issuer) => expectRefused(GOOD, "issuer_mismatch", issuer),
  );
});
