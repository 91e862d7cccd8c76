import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import fc from "fast-check";
import { parseSignature, serializeCompactSignature, signatureToCompactSignature, toHex } from "viem";
import { describe, expect, test } from "vitest";
import { multibase } from "../../../api/platform/signing/keys.ts";
import { checkSigned, InputError } from "../../../packages/verifier/src/index.ts";
import type { Kind } from "../../../packages/verifier/src/offer-receipt/statement.ts";
import type { JsonObject } from "../../../packages/verifier/src/strict-json.ts";
import { jws, type SignedTerms, typed } from "../../support/arbiter/signed-terms.ts";
import { KEY } from "./samples.ts";
import { DID, did, HEADER, KID, OFFER, SHOP, seller, stranger } from "./shop.ts";

const json = (signed: SignedTerms): JsonObject => JSON.parse(JSON.stringify(signed));
const check = (signed: SignedTerms, document = did) => checkSigned("offer", json(signed), { at: 1_000, did: document });
const isValid = async (...given: Parameters<typeof check>) => (await check(...given)).valid;

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const documentOf = (publicKeyJwk: object, id = KID) =>
  JSON.stringify({ id: DID, verificationMethod: [{ id, type: "JsonWebKey", controller: DID, publicKeyJwk }] });

describe("a JWS and its one key and algorithm", () => {
  const by = (header: object, make: (input: string) => Buffer): SignedTerms => {
    const input = `${part(header)}.${part(OFFER)}`;
    return { format: "jws", signature: `${input}.${make(input).toString("base64url")}` };
  };
  const dsa = (key: KeyObject) => (input: string) =>
    sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
  const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const p256Document = documentOf(p256.publicKey.export({ format: "jwk" }));
  /** An RFC 7797 signature, which a verifier must refuse unless crit requires it. */
  const plainly = (header: object) =>
    sign(null, Buffer.from(`${part(header)}.${JSON.stringify(OFFER)}`), KEY.privateKey);
  const publicBytes = Buffer.from(KEY.publicJwk.x, "base64url");

  const secp256k1 = generateKeyPairSync("ec", { namedCurve: "secp256k1" });
  const secp256k1Document = documentOf(secp256k1.publicKey.export({ format: "jwk" }));

  test("It is valid with a key as the host lists it", async () => {
    expect(await isValid(jws(KEY, HEADER, OFFER))).toBe(true);
    expect(await isValid(by({ alg: "ES256", kid: KID }, dsa(p256.privateKey)), p256Document)).toBe(true);
    expect(await isValid(by({ alg: "ES256K", kid: KID }, dsa(secp256k1.privateKey)), secp256k1Document)).toBe(true);
  });

  test.each<[string, readonly number[], ReturnType<typeof generateKeyPairSync>]>([
    ["ES256", [0x80, 0x24], p256],
    ["ES256K", [0xe7, 0x01], secp256k1],
  ])(
    "It is valid with a key that the host lists as a Multikey (%s)",
    async (alg, prefix, { privateKey, publicKey }) => {
      const { x = "", y = "" } = publicKey.export({ format: "jwk" });
      const coordinate = Buffer.from(x, "base64url");
      const sign = 2 + ((Buffer.from(y, "base64url").at(-1) ?? 0) % 2);
      const method = { id: KID, type: "Multikey", controller: DID };
      const document = (form: number) => {
        const publicKeyMultibase = multibase(Buffer.from([...prefix, form, ...coordinate]));
        return JSON.stringify({ id: DID, verificationMethod: [{ ...method, publicKeyMultibase }] });
      };
      const signed = by({ alg, kid: KID }, dsa(privateKey));
      expect(await isValid(signed, document(sign))).toBe(true);
      expect(await isValid(signed, document(5 - sign))).toBe(false);
      await expect(check(signed, document(4))).rejects.toThrow(/is not an Ed25519, P-256, or secp256k1 key/);
    },
  );

  test.each([
    ["https://shop.example/shops/a/haiku", "shops:a", true],
    ["https://shop.example/shops/a", "shops:a", true],
    ["https://shop.example/shops/a?x=/shops/b", "shops:a", true],
    ["https://shop.example/shops/ab/haiku", "shops:a", false],
    ["https://shop.example/shops/b/haiku", "shops:a", false],
    ["https://shop.example/shops/a/../b/haiku", "shops:a", false],
    ["https://shop.example/shops/a/..%2fb/haiku", "shops:a", false],
    ["https://other.example/shops/a/haiku", "shops:a", false],
    ["https://shop.example/haiku", "..", false],
    ["https://shop.example/haiku", "", false],
  ])("A key of a path covers only resources under it: %s by %s", async (resourceUrl, path, holds) => {
    const id = `${DID}:${path}`;
    const { publicJwk } = KEY;
    const verificationMethod = [{ id: `${id}#k`, type: "JsonWebKey", controller: id, publicKeyJwk: publicJwk }];
    const signed = jws(KEY, { alg: "EdDSA", kid: `${id}#k` }, { ...OFFER, resourceUrl });
    expect(await isValid(signed, JSON.stringify({ id, verificationMethod }))).toBe(holds);
  });

  test.each<[string, () => SignedTerms, string]>([
    ["none", () => by({ alg: "none", kid: KID }, () => Buffer.alloc(64)), did],
    [
      "an HMAC by the public key",
      () => by({ alg: "HS256", kid: KID }, (text) => createHmac("sha256", publicBytes).update(text).digest()),
      did,
    ],
    ["another curve's name", () => by({ alg: "ES256K", kid: KID }, dsa(p256.privateKey)), p256Document],
    ["P-256's name for secp256k1", () => by({ alg: "ES256", kid: KID }, dsa(secp256k1.privateKey)), secp256k1Document],
    [
      "another secp256k1 key",
      () => by({ alg: "ES256K", kid: KID }, dsa(secp256k1.privateKey)),
      documentOf(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey.export({ format: "jwk" })),
    ],
    [
      "a secp256k1 signature in DER",
      () => by({ alg: "ES256K", kid: KID }, (text) => sign("sha256", Buffer.from(text), secp256k1.privateKey)),
      secp256k1Document,
    ],
    ["the name of Ed25519 for P-256", () => by(HEADER, dsa(p256.privateKey)), p256Document],
    ["the name of P-256 for Ed25519", () => jws(KEY, { alg: "ES256", kid: KID }, OFFER), did],
    [
      "a P-256 signature in DER",
      () => by({ alg: "ES256", kid: KID }, (text) => sign("sha256", Buffer.from(text), p256.privateKey)),
      p256Document,
    ],
    [
      "a payload declared as unencoded",
      () => by({ ...HEADER, b64: false }, () => plainly({ ...HEADER, b64: false })),
      did,
    ],
  ])("It is not valid with %s", async (_, signed, document) => {
    expect(await isValid(signed(), document)).toBe(false);
  });

  test.each<[string, string, string]>([
    ["of the host without a fragment", DID, documentOf(KEY.publicJwk, "#undefined")],
    ["named like the host", DID, documentOf(KEY.publicJwk, DID)],
    ["by half of its fragment", `${DID}#a#b`, documentOf(KEY.publicJwk, "#a")],
    ["of a path of the host", `${DID}:users:mallory#k`, documentOf(KEY.publicJwk, "#k")],
    ["of the host with a dot at its end", `${DID}.#k`, documentOf(KEY.publicJwk, "#k")],
    ["of the host in capitals", `${DID.replace("shop", "SHOP")}#k`, documentOf(KEY.publicJwk, "#k")],
    [
      "of another method",
      "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK#k",
      documentOf(KEY.publicJwk, "#k"),
    ],
  ])("It is not valid by a key %s", async (_, kid, document) => {
    expect(await isValid(jws(KEY, { ...HEADER, kid }, OFFER), document)).toBe(false);
  });

  test.each<[string, object]>([
    ["too short", { kty: "OKP", crv: "Ed25519", x: "AAAA" }],
    ["not on its curve", { kty: "EC", crv: "P-256", x: "A".repeat(43), y: "A".repeat(43) }],
    ["of an unknown type", { kty: "oct", k: "AAAA" }],
  ])("A key that is %s makes the document unreadable, without a crash", async (_, jwk) => {
    await expect(check(jws(KEY, HEADER, OFFER), documentOf(jwk))).rejects.toThrow(InputError);
  });
});

describe("ambiguous input", () => {
  const twice = (text: string) => Buffer.from(text).toString("base64url");
  const parts = String(jws(KEY, HEADER, OFFER).signature).split(".") as [string, string, string];
  const reads = (signature: string, more = {}) => check({ format: "jws", signature, ...more });

  test.each<[string, () => Promise<unknown>, RegExp]>([
    [
      "a payload next to a JWS",
      () => reads(parts.join("."), { payload: { ...OFFER, amount: "1" } }),
      /next to its JWS/,
    ],
    ["padding", () => reads(`${parts.join(".")}==`), /characters outside base64url/],
    ["a line break", () => reads(`${parts[0]}.${parts[1]}\n.${parts[2]}`), /characters outside base64url/],
    [
      "a duplicate algorithm",
      () => reads([twice(`{"alg":"none","alg":"EdDSA","kid":"${KID}"}`), parts[1], parts[2]].join(".")),
      /duplicate/,
    ],
    [
      "a duplicate amount",
      () => reads([parts[0], twice(JSON.stringify(OFFER).replace("{", '{"amount":"1",')), parts[2]].join(".")),
      /duplicate/,
    ],
    ["a payload that is a list", () => reads([parts[0], twice("[]"), parts[2]].join(".")), /JSON object/],
    [
      "a time written 2e3",
      () => reads([parts[0], twice(JSON.stringify(OFFER).replace("2000", "2e3")), parts[2]].join(".")),
      /whole number/,
    ],
    [
      "no end",
      () => check(jws(KEY, HEADER, JSON.parse(JSON.stringify({ ...OFFER, validUntil: undefined })))),
      /validUntil is missing/,
    ],
    [
      "a time beyond 53 bits",
      () => reads([parts[0], twice(JSON.stringify(OFFER).replace("2000", "9007199254740993")), parts[2]].join(".")),
      /53 bits/,
    ],
    [
      "another site's name as the URL's user",
      () => check(jws(KEY, HEADER, { ...OFFER, resourceUrl: "https://trust.example@shop.example/haiku" })),
      /contains a user name/,
    ],
  ])("A document with %s is refused", async (_, given, reason) => {
    await expect(given()).rejects.toThrow(reason);
    await expect(given()).rejects.toThrow(InputError);
  });

  test.each([
    ["https://shop.example:443/haiku", true],
    ["https://SHOP.example/haiku", true],
    ["https://shop.example\\@trust.example/haiku", true],
    ["https://shop.example./haiku", false],
    ["https://shop.example:8443/haiku", false],
    ["http://shop.example/haiku", false],
    ["https://shop.example.evil.example/haiku", false],
    ["https://ſhop.example/haiku", true],
    ["https://shöp.example/haiku", false],
    ["data:text/plain,https://shop.example/", false],
  ])("The host covers %s: %s", async (resourceUrl, holds) => {
    expect(await isValid(jws(KEY, HEADER, { ...OFFER, resourceUrl }))).toBe(holds);
  });

  test.each([
    ["resourceUrl", "https://shop.example/h%61iku"],
    ["resourceUrl", "https://shop.example:443/haiku"],
    ["resourceUrl", "https://SHOP.example/haiku"],
    ["amount", "0250000"],
    ["amount", "250000.0"],
    ["amount", `${2n ** 256n + 250_000n}`],
  ])("Terms are compared character by character: another %s is %s", async (name, value) => {
    const signed = json(jws(KEY, HEADER, { ...OFFER, [name]: value }));
    const members = { [name]: String(OFFER[name]) };
    expect(await checkSigned("offer", signed, { at: 0, did, members })).toMatchObject({ valid: false });
  });
});

describe("an EIP-712 signature", () => {
  const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

  test("A signature of an offer is not valid for a receipt, another domain, or another chain", async () => {
    const domains = [
      { name: "x402 receipt", version: "1", chainId: 1 },
      { name: "x402 offer", version: "1", chainId: 8453 },
      { name: "x402 offer", version: "2", chainId: 1 },
      { name: "x402 offer", version: "1", chainId: 1, verifyingContract: seller.address },
    ];
    for (const domain of domains) {
      const by = { signTypedData: (data: object) => seller.signTypedData({ ...data, domain } as never) };
      expect(await isValid(await typed(by as never, "Offer", OFFER))).toBe(false);
    }
    const named = {
      signTypedData: ({ types, ...data }: { types: { Offer: object } }) =>
        seller.signTypedData({ ...data, types: { Receipt: types.Offer }, primaryType: "Receipt" } as never),
    };
    expect(await isValid(await typed(named as never, "Offer", OFFER))).toBe(false);
  });

  test("Every standard form of the signature is valid, and no other bytes are", async () => {
    const signed = await typed(seller, "Offer", OFFER);
    const { r, s, yParity } = parseSignature(signed.signature as `0x${string}`);
    const bytes = (v: number, one = r, other = s) => `${one}${other.slice(2)}${v.toString(16).padStart(2, "0")}`;
    const high = toHex(ORDER - BigInt(s), { size: 32 });
    const zero = toHex(0, { size: 32 });
    const as = (signature: string) => isValid({ ...signed, signature });
    for (const same of [bytes(yParity), bytes(27 + yParity), bytes(28 - yParity, r, high)])
      expect([same, await as(same)]).toEqual([same, true]);
    const erc2098 = serializeCompactSignature(signatureToCompactSignature({ r, s, yParity }));
    const others = [bytes(28 - yParity), bytes(29), bytes(255), bytes(27, zero), bytes(27, r, zero), erc2098, "0x", ""];
    for (const other of [...others, bytes(27, toHex(ORDER, { size: 32 })), `${signed.signature}00`])
      expect([other, await as(other)]).toEqual([other, false]);
  });

  test("It covers every member, and is not the payee's with any of them changed", async () => {
    const signed = await typed(seller, "Offer", OFFER);
    const names = Object.keys(OFFER).filter((name) => name !== "version");
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), fc.string(), fc.nat(), async (name, text, number) => {
        const value = name === "validUntil" ? 1_000 + number : name === "resourceUrl" ? `${SHOP}/${text}` : text;
        fc.pre(value !== OFFER[name] && String(value).isWellFormed());
        const changed = { ...signed, payload: { ...OFFER, [name]: value } };
        expect(await isValid(changed)).toBe(false);
      }),
      { numRuns: 40 },
    );
  });

  test("A stranger's signature is not the payee's, and the payee's is in any letter case of its address", async () => {
    expect(await isValid(await typed(stranger, "Offer", OFFER))).toBe(false);
    expect(await isValid(await typed(seller, "Offer", { ...OFFER, payTo: seller.address.toLowerCase() }))).toBe(true);
  });
});

/**
 * The public conformance vectors for `offer-receipt` in format JWS, version 2
 * (https://scvd.store/.well-known/conformance/offer-receipt-vectors.json). The kid is a label, so their key is trusted
 * directly.
 */
const VECTOR_KEY = {
  kty: "OKP",
  crv: "Ed25519",
  x: Buffer.from("2152f8d19b791d24453242e15f2eab6cb7cffa7b6a5ed30097960e069881db12", "hex").toString("base64url"),
};
const AT = Date.parse("2026-11-29") / 1000;
const VECTOR_HEADER = { alg: "EdDSA", kid: "did:web:scvd.store#conformance-test-key" };
const VECTOR_OFFER = {
  version: 1,
  resourceUrl: "https://example.com/api/buy/widget",
  scheme: "exact",
  network: "eip155:8453",
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  payTo: "0x1111111111111111111111111111111111111111",
  amount: "10000",
  validUntil: 4102444800,
};
const VECTOR_RECEIPT = {
  version: 1,
  network: "eip155:8453",
  resourceUrl: "https://example.com/api/buy/widget",
  payer: "0x2222222222222222222222222222222222222222",
  issuedAt: 1767225600,
  transaction: `0x${"ab".repeat(32)}`,
};
const GOOD = "I3V9b8co0MqWfOrg9NyUfw3FEx_5JZf1l4sb23XKyyNlNXIf1GTl979S1SbGfoluAtK2evPqSanpA9QBI7InAA";

/** Header, payload, and signature, which is null for a JWS without a third part. */
type Vector = readonly [object, object, string | null];
const checkVector = (kind: Kind, [header, payload, signature]: Vector) =>
  checkSigned(
    kind,
    { format: "jws", signature: [part(header), part(payload), ...(signature === null ? [] : [signature])].join(".") },
    { key: VECTOR_KEY, at: AT },
  );

describe("the public vectors", () => {
  test.each<[string, readonly [Kind, object, string], boolean]>([
    ["offer_valid", ["offer", VECTOR_OFFER, GOOD], true],
    [
      "receipt_valid",
      [
        "receipt",
        VECTOR_RECEIPT,
        "ejuDi0c6vesOF34lLIZDZZ2oAKj_Bbfnm87SsyjDWJ_uw1BOLDVZ18vj08qWC7HsKGs-ZxxlrfZc6fVWeLNPBQ",
      ],
      true,
    ],
    [
      "offer_expired_but_wellformed",
      [
        "offer",
        { ...VECTOR_OFFER, validUntil: 1735689600 },
        "2FIYFVeY5oen8Nd3R3cxqWujjvjaItVO77Xu3U62Q35YJONS7RfehMi-JXCKSFNGqWVFjboxW53Ji8Y7CNKkDQ",
      ],
      false,
    ],
  ])("The vector %s is genuine", async (_, [kind, payload, signature], valid) => {
    expect(await checkVector(kind, [VECTOR_HEADER, payload, signature])).toMatchObject({
      genuine: true,
      valid,
      payload,
    });
  });

  const { version: _, ...unversioned } = VECTOR_OFFER;
  const { payTo: __, ...unpaid } = VECTOR_OFFER;
  const { payer: ___, ...anonymous } = VECTOR_RECEIPT;
  test.each<[string, Vector, RegExp | "unsigned"]>([
    [
      "offer_missing_version",
      [
        VECTOR_HEADER,
        unversioned,
        "KiQp7_L8gCBxlmbqmrz0UOP4T6u-FYH4EkQCWF1rBVT-pWMYPrGFL7IlnXfVew-iSVl-o02kWKOzkRqc_AdnCQ",
      ],
      /version is missing/,
    ],
    [
      "offer_wrong_key",
      [
        VECTOR_HEADER,
        VECTOR_OFFER,
        "PWrVTn_PFln5UhUs9fAOyJUoT7bnUO9CgLTngFyKGABoHG7ByT34hTYSbSP6pc2sfCSBq2Tei47I12HjjKgyAQ",
      ],
      "unsigned",
    ],
    ["offer_tampered_payload", [VECTOR_HEADER, { ...VECTOR_OFFER, amount: "99999" }, GOOD], "unsigned"],
    ["offer_alg_none", [{ ...VECTOR_HEADER, alg: "none" }, VECTOR_OFFER, ""], /characters outside base64url/],
    [
      "offer_alg_confusion_hs256",
      [{ ...VECTOR_HEADER, alg: "HS256" }, VECTOR_OFFER, "8QE55sOamtAtYwzBQyqECpIynuGQn_hDa4yvOr_lPMM"],
      "unsigned",
    ],
    [
      "offer_missing_payTo",
      [VECTOR_HEADER, unpaid, "KKDiYOl59xl7qB7r0eF7siFeSpZCp69DN0CM4YjVjkIactXUznzS5Uda7V29AD6prvIFO4XsGaPRzsvnxlagCQ"],
      /payTo is missing/,
    ],
    [
      "receipt_missing_payer",
      [
        VECTOR_HEADER,
        anonymous,
        "sT59O1pjWkfYlHROWNgCVPbsuYNGLt1u-25qOsz0iJKmjBKTJyF3iTPXc0X9IbZcuhXJSh7gtno6y-UUZ7zfBQ",
      ],
      /payer is missing/,
    ],
    [
      "offer_no_kid",
      [
        { alg: "EdDSA" },
        VECTOR_OFFER,
        "Ry3X1qTCVm39jNTafoM41rOFM5g76jy7vJXAmzUlFJVW0SNqPT5nqivvrP-gn33zSt3QIkmuuI8tXfGTVt6MDA",
      ],
      /names no key/,
    ],
    ["offer_two_segments", [VECTOR_HEADER, VECTOR_OFFER, null], /three parts/],
    ["offer_truncated_signature", [VECTOR_HEADER, VECTOR_OFFER, GOOD.slice(0, 43)], "unsigned"],
  ])("The vector %s is refused", async (name, vector, why) => {
    const kind = name.startsWith("receipt") ? "receipt" : "offer";
    if (why === "unsigned") {
      const { genuine, valid, checks } = await checkVector(kind, vector);
      expect({ genuine, valid, checks: checks.filter(({ holds }) => !holds) }).toEqual({
        genuine: false,
        valid: false,
        checks: [{ statement: "the JWS verifies", holds: false }],
      });
      return;
    }
    await expect(checkVector(kind, vector)).rejects.toThrow(InputError);
    await expect(checkVector(kind, vector)).rejects.toThrow(why);
  });
});
