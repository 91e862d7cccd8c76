import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jcs } from "../../../api/platform/signing/document.ts";
import { parseIssuer } from "../../../packages/verifier/src/issuer.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { InputError } from "../../../packages/verifier/src/refusal.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { forge } from "./forge.ts";
import {
  CREDENTIAL,
  JWKS,
  KEY,
  KEYS,
  SAMPLE_NOW,
  SIGNED_CREDENTIAL,
  SIGNED_VERDICT,
  SIGNER,
  STRANGER,
} from "./samples.ts";

const verify = (source: string | Uint8Array, at = SAMPLE_NOW) => verifyDocument(source, { keys: KEYS, at });

const DOCUMENTS = [
  { kind: "credential", document: SIGNED_CREDENTIAL },
  { kind: "verdict", document: SIGNED_VERDICT },
];

/** A JSON value in one of many notations: members in another order, white space, escapes. */
function rewrite(value: unknown, random: (below: number) => number): string {
  const space = () => ["", "", " ", "\n", "\t ", "\r\n"][random(6)] ?? "";
  if (typeof value === "string") {
    const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
    const body = JSON.stringify(value).replace(/[^"\\]/g, (char) => (random(8) === 0 ? escaped(char) : char));
    // An escape inside an escape would change the text.
    return JSON.parse(JSON.stringify(value)) === tryParse(body) ? body : JSON.stringify(value);
  }
  if (Array.isArray(value))
    return `[${space()}${value.map((item) => rewrite(item, random)).join(`${space()},${space()}`)}${space()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, part]) => ({ name, part, place: random(1_000) }));
  const written = members
    .sort((a, b) => a.place - b.place)
    .map(({ name, part }) => `${rewrite(name, random)}${space()}:${space()}${rewrite(part, random)}`);
  return `{${space()}${written.join(`${space()},${space()}`)}${space()}}`;
}

const tryParse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

describe.each(DOCUMENTS)("a signed $kind", ({ document }) => {
  const bytes = Buffer.from(JSON.stringify(document));

  test("It is refused with any one byte removed or flipped in its lowest bit", async () => {
    expect((await verify(bytes)).valid).toBe(true);
    for (let at = 0; at < bytes.length; at++) {
      const flipped = await verify(bytes.with(at, (bytes[at] ?? 0) ^ 1));
      const shorter = await verify(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]));
      expect({ at, flipped: flipped.signature.valid, shorter: shorter.signature.valid }).toEqual({
        at,
        flipped: false,
        shorter: false,
      });
    }
  });

  test("It is still valid with members in another order, other white space, and escapes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.nat(999)), async (stream) => {
        const text = rewrite(document, (below) => Number(stream.next().value) % below);
        expect(await verify(text)).toMatchObject({ valid: true, document: {} });
        expect((await verify(text)).document).toEqual(document);
      }),
      { numRuns: 200 },
    );
  });
});

test("Any signed JSON with safe numbers verifies and is returned unchanged", async () => {
  const leaf = fc.oneof(fc.string({ unit: "grapheme" }), fc.maxSafeInteger(), fc.boolean(), fc.constant(null));
  const value = fc.object({ values: [leaf], maxDepth: 4, withNullPrototype: false });
  await fc.assert(
    fc.asyncProperty(value, async (content) => {
      fc.pre(!JSON.stringify(content).includes("-0"));
      const signed = await SIGNER.sign({ "@context": ["https://www.w3.org/ns/credentials/v2"], content }, SAMPLE_NOW);
      const text = JSON.stringify(signed);
      expect(await verify(text)).toMatchObject({ valid: true });
      expect(jcs((await verify(text)).document?.content)).toBe(jcs(content));
    }),
    { numRuns: 300 },
  );
});

describe("freshness", () => {
  const text = JSON.stringify(SIGNED_CREDENTIAL);
  const from = Date.parse(CREDENTIAL.validFrom);
  const until = Date.parse(CREDENTIAL.validUntil ?? "");

  test.each([
    ["not_yet_valid", from - 60_001],
    ["current", from - 60_000],
    ["current", from],
    ["current", until - 1],
    ["expired", until],
  ] as const)("It is %s at %d, separately from the signature", async (state, at) => {
    const report = await verify(text, new Date(at));
    expect(report).toMatchObject({ valid: state === "current", signature: { valid: true }, freshness: { state } });
    expect(report.document).toEqual(SIGNED_CREDENTIAL);
  });

  test("A document without an end is no_expiry at any time after its proof", async () => {
    const report = await verify(JSON.stringify(SIGNED_VERDICT), new Date("2199-01-01T00:00:00Z"));
    expect(report).toMatchObject({ valid: true, freshness: { state: "no_expiry", from: SAMPLE_NOW.toISOString() } });
    const early = await verify(JSON.stringify(SIGNED_VERDICT), new Date(SAMPLE_NOW.getTime() - 60_001));
    expect(early).toMatchObject({ valid: false, freshness: { state: "not_yet_valid" } });
  });

  test("It uses the clock when no time is given", async () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
    const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();
    const report = async (validUntil: string) => {
      const document = { ...CREDENTIAL, validFrom: "2020-01-01T00:00:00Z", validUntil };
      return (await verifyDocument(JSON.stringify(forge({ document })), { keys: KEYS })).freshness.state;
    };
    expect([await report(inAnHour), await report(anHourAgo)]).toEqual(["current", "expired"]);
  });
});

describe("a key set", () => {
  const good = KEY.publicJwk;
  const set = (...keys: unknown[]) => JSON.stringify({ keys });

  test("It keeps its Ed25519 signature keys and ignores the others", async () => {
    const others = [
      { kty: "RSA", kid: "r" },
      { ...STRANGER.publicJwk, use: "enc" },
      { ...STRANGER.publicJwk, crv: "X25519" },
    ];
    expect([...(await parseKeySet(set(...others, good))).keys()]).toEqual([good.kid]);
    expect((await parseKeySet(JSON.stringify(JWKS))).size).toBe(1);
  });

  test.each([
    ["that is not JSON", "keys", /cannot be read/],
    ["that is a list", "[]", /not a JSON object/],
    ["without keys", "{}", /not a JWK Set with an array named keys/],
    ["without an entry", set(), /no Ed25519 key/],
    ["with other keys only", set({ kty: "RSA" }), /no Ed25519 key/],
    ["with a private key", set({ ...good, d: "secret" }), /private key/],
    ["without a kid", set({ ...good, kid: undefined }), /usable kid and x/],
    ["with a short key", set({ ...good, x: "AAAA" }), /usable kid and x/],
    ["with a duplicate key id", set(good, { ...STRANGER.publicJwk, kid: good.kid }), /twice/],
    ["with a duplicate member", '{"keys":[],"keys":[]}', /duplicate member/],
  ])("A key set %s is the caller's mistake", async (_, text, message) => {
    await expect(parseKeySet(text)).rejects.toThrow(InputError);
    await expect(parseKeySet(text)).rejects.toThrow(message);
  });
});

describe("an issuer", () => {
  test.each([
    ["https://trust.example", "did:web:trust.example", "https://trust.example"],
    ["https://trust.example/", "did:web:trust.example", "https://trust.example"],
    ["did:web:trust.example", "did:web:trust.example", "https://trust.example"],
    ["https://trust.example:8443", "did:web:trust.example%3A8443", "https://trust.example:8443"],
    ["http://localhost:4020", "did:web:localhost%3A4020", "http://localhost:4020"],
    ["did:web:localhost%3A4020", "did:web:localhost%3A4020", "http://localhost:4020"],
  ])("The issuer %s is %s at %s", (text, did, origin) => expect(parseIssuer(text)).toEqual({ did, origin }));

  test.each([
    "trust.example",
    "http://trust.example",
    "https://localhost:4020",
    "https://127.0.0.1",
    "http://[::1]:80",
    "ftp://trust.example",
    "https://trust.example/a",
    "https://user@trust.example",
    "https://trust.example?a",
    "did:web:trust.example:a",
    "did:web:127.0.0.1",
    "did:web:trust.example%3A99999",
    "did:web:trust.example/a",
    "did:key:z6Mk",
    "",
    "\u001b[2J",
  ])("The text %j is not an issuer", (text) => {
    expect(() => parseIssuer(text)).toThrow(InputError);
    expect(() => parseIssuer(text)).toThrow(/^[\x20-\x7e]+ is not an issuer/);
  });
});
