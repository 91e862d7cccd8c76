import fc from "fast-check";
import { base58btc } from "multiformats/bases/base58";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../api/platform/config/config.ts";
import { didDocument, didWeb } from "../../../api/platform/signing/did.ts";
import { multibase, parseRetiredKeys, publicKeys } from "../../../api/platform/signing/keys.ts";
import { base58 } from "../../../packages/verifier/src/encodings.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { joseAccepts, w3cAccepts } from "../../packages/verifier/independent.ts";
import {
  CREDENTIAL,
  DID,
  ISSUER,
  JWKS,
  KEY,
  KEYS,
  SAMPLE_NOW,
  SIGNED_CREDENTIAL,
  SIGNED_VERDICT,
  SIGNER,
  STRANGER,
} from "../../packages/verifier/samples.ts";
import { completeEnvironment } from "../../support/service/environment.ts";

import golden from "../../vectors/credential.json" with { type: "json" };
import goldenKeys from "../../vectors/jwks.json" with { type: "json" };

const DOCUMENTS = [
  { kind: "credential", document: SIGNED_CREDENTIAL },
  { kind: "verdict", document: SIGNED_VERDICT },
];

describe.each(DOCUMENTS)("A signed $kind", ({ document }) => {
  test("A signed document has a proof in the published format", () => {
    expect(document.proof).toEqual({
      "@context": document["@context"],
      type: "DataIntegrityProof",
      cryptosuite: "eddsa-jcs-2022",
      created: SAMPLE_NOW.toISOString(),
      verificationMethod: `did:web:trust.example#${KEY.publicJwk.kid}`,
      proofPurpose: "assertionMethod",
      jws: expect.stringMatching(/^[\w-]+\.\.[\w-]{86}$/),
      proofValue: expect.stringMatching(/^z[1-9A-HJ-NP-Za-km-z]{80,90}$/),
    });
    const [header = ""] = document.proof.jws.split(".");
    expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({ alg: "EdDSA", kid: KEY.publicJwk.kid });
  });

  test("jose and an independent implementation of the W3C suite accept the document", async () => {
    expect(await joseAccepts(document, JWKS)).toBe(true);
    expect(await w3cAccepts(document, DID)).toBe(true);
  });

  test("Both verifiers reject a document with one byte changed outside its proof", async () => {
    const { proof, ...unsigned } = document;
    const bytes = Buffer.from(JSON.stringify(unsigned));
    const change = fc.record({ at: fc.nat(bytes.length - 1), byte: fc.integer({ min: 0x20, max: 0x7e }) });
    let readable = 0;
    await fc.assert(
      fc.asyncProperty(change, async ({ at, byte }) => {
        fc.pre(bytes[at] !== byte);
        const changed = parse(Buffer.from(bytes.with(at, byte)).toString());
        if (changed === null) return;
        readable++;
        expect(await joseAccepts({ ...changed, proof }, JWKS)).toBe(false);
        expect(await w3cAccepts({ ...changed, proof }, DID)).toBe(false);
      }),
      { numRuns: 150 },
    );
    expect(readable).toBeGreaterThan(50);
  });

  test("The W3C suite rejects a proof with a different time, key, or jws, because the signature covers the proof's members", async () => {
    const other = { created: "2026-11-24T12:00:01.000Z", jws: document.proof.jws.replace("..", "..A").slice(0, -1) };
    for (const change of Object.entries(other)) {
      const proof = { ...document.proof, ...Object.fromEntries([change]) };
      expect(await w3cAccepts({ ...document, proof }, DID)).toBe(false);
    }
    const strange = didDocument(ISSUER, [{ ...STRANGER.publicJwk, kid: KEY.publicJwk.kid }]);
    expect(await w3cAccepts(document, strange)).toBe(false);
  });
});

const parse = (text: string): Record<string, unknown> | null => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

describe("The signer", () => {
  test("A document signed as text equals the serialized signed document, byte for byte", async () => {
    const document = { ...CREDENTIAL, proofs: [{ b: "ü\n", a: 1 }], left: undefined };
    const text = await SIGNER.signAsText(document, SAMPLE_NOW);
    expect(text).toBe(JSON.stringify(await SIGNER.sign(document, SAMPLE_NOW)));
    const inexact = { ...CREDENTIAL, number: 1.5 } as never;
    await expect(SIGNER.signAsText(inexact, SAMPLE_NOW)).rejects.toThrow(/safe integer/);
  });

  test.each([1.5, 2 ** 53, -0, Number.NaN])("The signer refuses %d at any depth", async (number) => {
    const document = { ...CREDENTIAL, facts: [{ number }] };
    await expect(SIGNER.sign(document, SAMPLE_NOW)).rejects.toThrow(/safe integer/);
    expect(await SIGNER.sign({ ...CREDENTIAL, facts: [{ number: 2 ** 53 - 1 }] }, SAMPLE_NOW)).toBeDefined();
  });
});

describe("The golden credential", () => {
  test("The service reproduces the golden credential byte for byte", () => {
    expect(SIGNED_CREDENTIAL).toEqual(golden);
    expect(JSON.stringify(SIGNED_CREDENTIAL)).toBe(JSON.stringify(golden));
    expect(JWKS).toEqual(goldenKeys);
  });

  test("The golden credential verifies and expires with the first counted certificate, not the newest or an expired one", async () => {
    const report = await verifyDocument(JSON.stringify(golden), { keys: KEYS, at: SAMPLE_NOW });
    expect(report).toMatchObject({ valid: true, freshness: { state: "current", until: "2026-12-20T08:00:00.000Z" } });
    expect(golden.credentialSubject.conformance.map(({ valid_until }) => valid_until)).toEqual([
      "2026-12-21T09:30:00.000Z",
      "2026-12-20T08:00:00.000Z",
      "2026-10-01T08:00:00.000Z",
    ]);
  });
});

describe("base58btc", () => {
  test("Encoding and decoding match multiformats, including leading zeros", () => {
    fc.assert(
      fc.property(fc.nat(4), fc.uint8Array({ maxLength: 64 }), (zeros, tail) => {
        const bytes = new Uint8Array([...new Uint8Array(zeros), ...tail]);
        expect(multibase(bytes)).toBe(base58btc.encode(bytes));
        expect(base58(multibase(bytes).slice(1), bytes.length)).toEqual(bytes);
        expect(base58(multibase(bytes).slice(1), bytes.length + 1)).toBeNull();
      }),
    );
  });
});

describe("The DID document", () => {
  test.each([
    ["https://trust.example", "did:web:trust.example"],
    ["https://TRUST.example:8443", "did:web:trust.example%3A8443"],
    ["http://localhost:4020", "did:web:localhost%3A4020"],
  ])("The DID of %s is %s", (baseUrl, did) => expect(didWeb(baseUrl)).toBe(did));

  test("The DID document lists the current key and each retired key once, for assertions", async () => {
    const keys = await publicKeys(KEY.publicJwk, [STRANGER.publicJwk.x, KEY.publicJwk.x, STRANGER.publicJwk.x]);
    expect(keys).toEqual([KEY.publicJwk, STRANGER.publicJwk]);
    const ids = keys.map(({ kid }) => `${ISSUER}#${kid}`);
    const document = didDocument(ISSUER, keys);
    expect(document).toMatchObject({ id: ISSUER, assertionMethod: ids });
    expect(document.verificationMethod).toEqual(
      keys.map(({ x, kid }) => ({
        id: `${ISSUER}#${kid}`,
        type: "Multikey",
        controller: ISSUER,
        publicKeyMultibase: base58btc.encode(Buffer.concat([Buffer.of(0xed, 1), Buffer.from(x, "base64url")])),
      })),
    );
  });
});

describe("RETIRED_SIGNING_KEYS", () => {
  const [{ x }, { x: other }] = [KEY.publicJwk, STRANGER.publicJwk];
  const jwk = JSON.stringify(STRANGER.publicJwk);

  test("RETIRED_SIGNING_KEYS accepts x values and whole JWKs in any mix", () => {
    expect(parseRetiredKeys(`${x}, ${jwk} ,${x}`)).toEqual({ keys: [x, other, x], problems: [] });
  });

  test.each([
    ["short", /^value 1 is not a public key: .*43 base64url/],
    ["", /^value 1 is not a public key/],
    [`${x}=`, /^value 1 is not a public key/],
    // The same 32 bytes with different unused bits.
    [`${x.slice(0, -1)}${String.fromCharCode(x.charCodeAt(42) + 1)}`, /^value 1 is not a public key/],
    [`${x},,${x}`, /^value 2 is not a public key/],
    ['{"kty":"OKP"', /^value 1 is not a JWK/],
    [`${x},{"kty":"EC","crv":"P-256","x":"${x}"}`, /^value 2 is not a JWK .*kty OKP, crv Ed25519/],
    [`{"kty":"OKP","crv":"Ed25519","x":"${x}","d":"${other}"}`, /^value 1 holds a private key: remove its member d$/],
    ["AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", /^value 1 is not a point .*never a SIGNING_KEY/],
    ["_____________________________________________", /^value 1 is not a public key/],
    [Buffer.from(`ed${"ff".repeat(30)}7f`, "hex").toString("base64url"), /^value 1 is not a point/],
  ])("%j is refused with a reason that does not repeat a key", (text, problem) => {
    const { problems } = parseRetiredKeys(text);
    expect(problems).toEqual([expect.stringMatching(problem)]);
    for (const key of [x, other]) expect(problems[0]).not.toContain(key);
  });
});

describe("Keys and addresses in the environment", () => {
  const SEED = Buffer.alloc(32, 7).toString("base64url");
  const GOOD = completeEnvironment(SEED);

  /** Returns one line per problem. */
  const problemsOf = (environment: Record<string, string>): readonly string[] => {
    const config = parseConfig({ ...GOOD, ...environment });
    return "problem" in config ? config.problem.split("\n") : [];
  };

  describe("RETIRED_SIGNING_KEYS", () => {
    test("RETIRED_SIGNING_KEYS must not contain the private key, because it is published", () => {
      // A private key that is also a valid point, so that only the comparison detects it.
      const seed = KEY.publicJwk.x;
      const problems = problemsOf({ SIGNING_KEY: seed, RETIRED_SIGNING_KEYS: seed });
      expect(problems).toEqual([
        expect.stringMatching(/^RETIRED_SIGNING_KEYS is wrong: .*SIGNING_KEY, which is private/),
      ]);
      expect(problems[0]).not.toContain(seed);
    });
  });

  describe("BASE_URL", () => {
    test.each(["http://127.0.0.1:4020", "http://[::1]:4020", "https://0x7f.1", "https://10.1"])(
      "%s is refused as BASE_URL, because an issuer needs a host name",
      (BASE_URL) =>
        expect(problemsOf({ BASE_URL })).toEqual([expect.stringMatching(/^BASE_URL is wrong: .*host name/)]),
    );
  });
});
