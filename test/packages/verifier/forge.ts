import { createHmac, sign } from "node:crypto";
import { base58btc } from "multiformats/bases/base58";
import { hashData, jcs } from "../../../api/platform/signing/document.ts";
import { multibase } from "../../../api/platform/signing/keys.ts";
import { CREDENTIAL, ISSUER, KEY, SAMPLE_NOW, STRANGER } from "./samples.ts";

export interface Forgery {
  /** The document without its proof. */
  readonly document?: object;
  /** The jws header, as an object or as JSON text. */
  readonly header?: unknown;
  /** The segments of the jws: header, payload as sent, signature. */
  readonly segments?: (header: string, payload: string, signature: string) => string;
  /** Members of the proof that differ. `undefined` removes one. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Replaces the finished proof value. */
  readonly value?: (value: string) => unknown;
  readonly jwsKey?: typeof KEY;
  readonly valueKey?: typeof KEY;
}

export const HEADER = { alg: "EdDSA", kid: KEY.publicJwk.kid };

/** A signed credential that differs from a good one only as given. Both signatures cover the difference. */
export function forge(forgery: Forgery = {}) {
  const { document = CREDENTIAL, header = HEADER, segments = (h, _, s) => `${h}..${s}` } = forgery;
  const { options = {}, value = (v) => v, jwsKey = KEY, valueKey = KEY } = forgery;
  const canonical = jcs(document);
  const first = base64url(typeof header === "string" ? header : JSON.stringify(header));
  const payload = base64url(canonical);
  const signature = sign(null, Buffer.from(`${first}.${payload}`), jwsKey.privateKey).toString("base64url");
  const proof = {
    "@context": CREDENTIAL["@context"],
    type: "DataIntegrityProof",
    cryptosuite: "eddsa-jcs-2022",
    created: SAMPLE_NOW.toISOString(),
    verificationMethod: `${ISSUER}#${KEY.publicJwk.kid}`,
    proofPurpose: "assertionMethod",
    jws: segments(first, payload, signature),
    ...options,
  };
  const proofValue = multibase(sign(null, hashData(proof, canonical), valueKey.privateKey));
  return { ...document, proof: { ...proof, proofValue: value(proofValue) } };
}

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** A valid document. */
export const GOOD = JSON.stringify(forge());

/** The good document's text with one more member at its beginning. */
const withMember = (member: string) => GOOD.replace("{", `{${member},`);

/** Texts that are not strict JSON. */
export const NOT_STRICT: readonly (readonly [name: string, source: string | Uint8Array])[] = [
  ["nothing", ""],
  ["a truncated document", GOOD.slice(0, -1)],
  ["something after the document", `${GOOD}{}`],
  ["a byte order mark", `\ufeff${GOOD}`],
  [
    "bytes that are not UTF-8",
    Buffer.concat([Buffer.from(GOOD.slice(0, 20)), Buffer.of(0xff), Buffer.from(GOOD.slice(20))]),
  ],
  ["a control character in a string", GOOD.replace("VerifiableCredential", "Verifiable\tCredential")],
  ["an escape that JSON does not have", GOOD.replace("VerifiableCredential", "\\x56erifiableCredential")],
  ["half of a surrogate pair", withMember('"a":"\\ud83d"')],
  ["half of a surrogate pair in a name", withMember('"\\ude00":1')],
  ["white space that JSON does not have", `\u00a0${GOOD}`],
  ["a fraction", withMember('"a":1.5')],
  ["a whole number with a fraction of zero", withMember('"a":1.0')],
  ["an exponent", withMember('"a":1e3')],
  ["minus zero", withMember('"a":-0')],
  ["a leading zero", withMember('"a":01')],
  ["a number over 53 bits", withMember('"a":9007199254740993')],
  ["65 levels", withMember(`"a":${"[".repeat(65)}${"]".repeat(65)}`)],
];

/** Texts in which an object has a duplicate member. */
export const NAMED_TWICE: readonly (readonly [place: string, source: string])[] = [
  ["that is the same only after its escapes are decoded", withMember('"\\u0074ype":[]')],
  ["called __proto__", withMember('"a":{"__proto__":1,"__proto__":1}')],
  ["in the jws header", JSON.stringify(forge({ header: `{"alg":"EdDSA","alg":"EdDSA","kid":"${HEADER.kid}"}` }))],
];

/** The value with 63 or 65 of its 64 bytes. */
const resized = (text: string, bytes: number) => {
  const value = Buffer.from(text, "base64url");
  return Buffer.concat([value, Buffer.alloc(1)])
    .subarray(0, bytes)
    .toString("base64url");
};
/** The same signature with other spare bits in its last character. */
const sloppy = (text: string) => `${text.slice(0, -1)}${String.fromCharCode(text.charCodeAt(85) + 1)}`;
const { "@context": CONTEXT, ...NO_CONTEXT } = CREDENTIAL;
const publicPem = KEY.publicJwk.x;
const mac = (h: string, p: string) => createHmac("sha256", publicPem).update(`${h}.${p}`).digest("base64url");

/** Proofs that are refused, by the code of the refusal. */
export const FORGERIES: readonly [code: string, name: string, forgery: Forgery][] = [
  ["malformed_document", "an end that is not a time", { document: { ...CREDENTIAL, validUntil: "tomorrow" } }],
  ["malformed_document", "an end that is a number", { document: { ...CREDENTIAL, validUntil: 4_102_444_800 } }],
  [
    "malformed_document",
    "a beginning without a time zone",
    { document: { ...CREDENTIAL, validFrom: "2026-11-21T09:30:00" } },
  ],
  ["malformed_proof", "an unknown member, although it is signed", { options: { expires: "2026-01-01T00:00:00Z" } }],
  ["malformed_proof", "another type", { options: { type: "JsonWebSignature2020" } }],
  ["malformed_proof", "another suite", { options: { cryptosuite: "eddsa-rdfc-2022" } }],
  ["malformed_proof", "another purpose", { options: { proofPurpose: "authentication" } }],
  ["malformed_proof", "another @context", { options: { "@context": [...CONTEXT].reverse() } }],
  ["malformed_proof", "only the beginning of the @context", { options: { "@context": CONTEXT.slice(0, 1) } }],
  ["malformed_proof", "no @context", { options: { "@context": undefined } }],
  ["malformed_proof", "no @context anywhere", { document: NO_CONTEXT, options: { "@context": undefined } }],
  ["malformed_proof", "a day that does not exist", { options: { created: "2026-13-01T00:00:00Z" } }],
  ["malformed_proof", "no time", { options: { created: undefined } }],
  ["malformed_proof", "no jws, although the proof value is good", { options: { jws: undefined } }],
  ["malformed_proof", "no proof value, although the jws is good", { value: () => undefined }],
  ["malformed_proof", "a proof value in another base", { value: (v) => `u${v.slice(1)}` }],
  ["malformed_proof", "a proof value with a digit that base58 lacks", { value: (v) => `${v.slice(0, -1)}0` }],
  ["malformed_proof", "a proof value with a leading zero", { value: (v) => v.replace("z", "z1") }],
  ["malformed_proof", "a proof value of 63 bytes", { value: (v) => base58btc.encode(base58btc.decode(v).slice(1)) }],
  ["malformed_proof", "an endless proof value", { value: (v) => v.repeat(10_000) }],
  [
    "malformed_proof",
    "a method that is not did:web",
    { options: { verificationMethod: `did:key:z6Mk#${HEADER.kid}` } },
  ],
  ["malformed_proof", "a method without a key", { options: { verificationMethod: ISSUER } }],
  [
    "malformed_proof",
    "an IP address as issuer",
    { options: { verificationMethod: `did:web:127.0.0.1#${HEADER.kid}` } },
  ],
  ["malformed_proof", "a path in the issuer", { options: { verificationMethod: `${ISSUER}:a#${HEADER.kid}` } }],
  [
    "issuer_mismatch",
    "another issuer in the document",
    { document: { ...CREDENTIAL, issuer: "did:web:other.example" } },
  ],
  ["issuer_mismatch", "an issuer that is an object", { document: { ...CREDENTIAL, issuer: { id: ISSUER } } }],
  [
    "issuer_mismatch",
    "another issuer in the method",
    { options: { verificationMethod: `did:web:other.example#${HEADER.kid}` } },
  ],
  ["algorithm_not_allowed", "alg none", { header: { ...HEADER, alg: "none" }, segments: (h) => `${h}..` }],
  [
    "algorithm_not_allowed",
    "alg HS256 with the public key as secret",
    { header: { ...HEADER, alg: "HS256" }, segments: (h, p) => `${h}..${mac(h, p)}` },
  ],
  ["algorithm_not_allowed", "alg ES256", { header: { ...HEADER, alg: "ES256" } }],
  ["algorithm_not_allowed", "the newer name of the same algorithm", { header: { ...HEADER, alg: "Ed25519" } }],
  ["algorithm_not_allowed", "no alg", { header: { kid: HEADER.kid } }],
  ["critical_header", "an unknown extension", { header: { ...HEADER, crit: ["exp"], exp: 1 } }],
  ["critical_header", "the unencoded payload option", { header: { ...HEADER, b64: false, crit: ["b64"] } }],
  ["critical_header", "an empty crit", { header: { ...HEADER, crit: [] } }],
  ["payload_not_detached", "the payload, although it is the same", { segments: (h, p, s) => `${h}.${p}.${s}` }],
  ["payload_not_detached", "another payload", { segments: (h, _, s) => `${h}.e30.${s}` }],
  ["malformed_jws", "one dot", { segments: (h, _, s) => `${h}.${s}` }],
  ["malformed_jws", "three dots", { segments: (h, _, s) => `${h}..${s}.` }],
  ["malformed_jws", "a header that is not base64url", { segments: (h, _, s) => `${h}=..${s}` }],
  [
    "malformed_jws",
    "a header of a length that base64url never has",
    { segments: (h, _, s) => `${h.slice(0, 77)}..${s}` },
  ],
  ["malformed_jws", "a header that is a list", { header: [HEADER] }],
  ["malformed_jws", "no header", { segments: (_, __, s) => `..${s}` }],
  ["malformed_json", "a header that is not JSON", { header: "EdDSA" }],
  ["malformed_jws", "an embedded key in the header", { header: { ...HEADER, jwk: STRANGER.publicJwk } }],
  ["malformed_jws", "b64 without crit", { header: { ...HEADER, b64: true } }],
  ["malformed_jws", "no kid", { header: { alg: "EdDSA" } }],
  ["malformed_jws", "another kid than the method's", { header: { ...HEADER, kid: STRANGER.publicJwk.kid } }],
  ["malformed_jws", "a signature of 63 bytes", { segments: (h, _, s) => `${h}..${resized(s, 63)}` }],
  ["malformed_jws", "a signature of 65 bytes", { segments: (h, _, s) => `${h}..${resized(s, 65)}` }],
  ["malformed_jws", "padding", { segments: (h, _, s) => `${h}..${s}==` }],
  ["malformed_jws", "spare bits that are not zero", { segments: (h, _, s) => `${h}..${sloppy(s)}` }],
  ["jws_mismatch", "a stranger's jws under our key's name", { jwsKey: STRANGER }],
  [
    "jws_mismatch",
    "the jws of another document",
    { segments: (h) => `${h}..${forge({ document: { a: 1 } }).proof.jws.split(".")[2]}` },
  ],
  ["proof_value_mismatch", "a stranger's proof value under our key's name", { valueKey: STRANGER }],
  [
    "proof_value_mismatch",
    "the proof value of another proof",
    { value: () => forge({ options: { created: "2026-11-24T12:00:01Z" } }).proof.proofValue },
  ],
];
