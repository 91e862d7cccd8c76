import { createPublicKey, sign } from "node:crypto";
import { type CryptoKey, FlattenedSign, importJWK } from "jose";
import { base58btc } from "multiformats/bases/base58";
import { describe, expect, test } from "vitest";
import { hashData, jcs, proofValue } from "../../../api/platform/signing/document.ts";
import { multibase, signingKey } from "../../../api/platform/signing/keys.ts";
import { base58 } from "../../../packages/verifier/src/encodings.ts";
import { jcs as verifierJcs } from "../../../packages/verifier/src/jcs.ts";
import { jwsHolds, proofValueHolds } from "../../../packages/verifier/src/signatures.ts";
import { w3cAccepts } from "../../packages/verifier/independent.ts";
import w3c from "../../vectors/eddsa-jcs-2022.json" with { type: "json" };
import rfc8037 from "../../vectors/rfc8037.json" with { type: "json" };
import rfc8785 from "../../vectors/rfc8785.json" with { type: "json" };

const CANONICALIZERS = { signer: jcs, verifier: verifierJcs };

describe.each(Object.entries(CANONICALIZERS))("RFC 8785 in the %s", (_, canonical) => {
  test.each(rfc8785.examples)("The $name example has the expected bytes", ({ input, utf8Hex }) => {
    expect(Buffer.from(canonical(JSON.parse(input))).toString("hex")).toBe(utf8Hex);
  });

  test("Members are sorted by UTF-16 code units (section 3.2.3)", () => {
    const sorted = JSON.parse(
      `[${canonical(JSON.parse(rfc8785.sorting.input)).slice(1, -1).replaceAll('":"', '","')}]`,
    );
    expect(sorted.filter((_: string, index: number) => index % 2 === 1)).toEqual(rfc8785.sorting.values);
  });

  test.each(rfc8785.numbers)("The number $ieee754 is written as $json (appendix B)", ({ ieee754, json }) => {
    expect(canonical(double(ieee754))).toBe(json);
  });

  test.each(rfc8785.refusedNumbers)("%s is rejected because JSON has no such number (appendix B)", (bits) => {
    expect(() => canonical(double(bits))).toThrow(/not allowed/);
  });
});

const double = (bits: string): number => Buffer.from(bits, "hex").readDoubleBE();

describe("RFC 8037, appendix A", () => {
  const seed = Buffer.from(rfc8037.privateJwk.d, "base64url");
  const [header = "", payload = "", signature = ""] = rfc8037.jws.split(".");

  test("The public key and its thumbprint are derived from the private key (A.1 to A.3)", async () => {
    const { publicJwk } = await signingKey(seed);
    expect(publicJwk).toMatchObject({ x: rfc8037.privateJwk.x, kid: rfc8037.thumbprint });
  });

  test("The key produces the example's signature (A.4)", async () => {
    const { privateKey } = await signingKey(seed);
    const jws = await new FlattenedSign(Buffer.from(rfc8037.payload))
      .setProtectedHeader({ alg: "EdDSA" })
      .sign(privateKey);
    expect(`${jws.protected}.${jws.payload}.${jws.signature}`).toBe(rfc8037.jws);
    expect(sign(null, Buffer.from(`${header}.${payload}`), privateKey).toString("base64url")).toBe(signature);
  });

  test("The verifier accepts the example's signature only over its exact text (A.5)", async () => {
    const { d: _, ...jwk } = rfc8037.privateJwk;
    const key = (await importJWK(jwk, "EdDSA")) as CryptoKey;
    const jws = { protected: header, signature: Uint8Array.from(Buffer.from(signature, "base64url")), kid: "" };
    expect(await jwsHolds(jws, Buffer.from(rfc8037.payload), key)).toBe(true);
    expect(await jwsHolds(jws, Buffer.from(rfc8037.payload.toLowerCase()), key)).toBe(false);
  });
});

describe("W3C eddsa-jcs-2022", () => {
  /** Returns Multikey bytes without their two-byte multicodec prefix. */
  const raw = (text: string) => Buffer.from(base58btc.decode(text).slice(2));

  test("The signer computes every value of the example", async () => {
    const { privateKey } = await signingKey(raw(w3c.keyPair.privateKeyMultibase));
    const canonical = jcs(w3c.unsigned);
    expect(canonical).toBe(w3c.canonicalDocument);
    expect(jcs(w3c.proofOptions)).toBe(w3c.canonicalProofOptions);
    expect(hashData(w3c.proofOptions, canonical).toString("hex")).toBe(w3c.combinedHash);
    expect(w3c.combinedHash).toBe(w3c.proofOptionsHash + w3c.documentHash);
    expect(await proofValue(w3c.proofOptions, canonical, privateKey)).toBe(w3c.proofValue);
    const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
    expect(multibase(Buffer.from(`ed01${Buffer.from(x, "base64url").toString("hex")}`, "hex"))).toBe(
      w3c.keyPair.publicKeyMultibase,
    );
  });

  test("The verifier accepts the example's proof value only for its exact document and options", async () => {
    const x = raw(w3c.keyPair.publicKeyMultibase).toString("base64url");
    const key = (await importJWK({ kty: "OKP", crv: "Ed25519", x }, "EdDSA")) as CryptoKey;
    const signature = base58(w3c.proofValue.slice(1), 64);
    if (signature === null) throw new Error("the verifier cannot read the example's proof value");
    expect(Buffer.from(signature).toString("hex")).toBe(w3c.signatureHex);
    const signed = { canonicalOptions: w3c.canonicalProofOptions, proofValue: signature };
    expect(await proofValueHolds(signed, Buffer.from(w3c.canonicalDocument), key)).toBe(true);
    expect(await proofValueHolds(signed, Buffer.from(w3c.canonicalDocument.replace("Alumni", "alumni")), key)).toBe(
      false,
    );
    const later = w3c.canonicalProofOptions.replace("23:36:38Z", "23:36:39Z");
    expect(later).not.toBe(w3c.canonicalProofOptions);
    expect(await proofValueHolds({ ...signed, canonicalOptions: later }, Buffer.from(w3c.canonicalDocument), key)).toBe(
      false,
    );
  });

  test("The independent verifier used in these tests also accepts the example", async () => {
    const method = w3c.proofOptions.verificationMethod;
    const [id = ""] = method.split("#");
    const { publicKeyMultibase } = w3c.keyPair;
    const did = {
      "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
      id,
      verificationMethod: [{ id: method, type: "Multikey", controller: id, publicKeyMultibase }],
      assertionMethod: [method],
    };
    expect(await w3cAccepts(w3c.signed, did)).toBe(true);
    expect(await w3cAccepts({ ...w3c.signed, name: "Alumna Credential" }, did)).toBe(false);
  });
});
