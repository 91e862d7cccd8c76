import { describe, expect, test } from "vitest";
import { checkSigned, InputError } from "../../../packages/verifier/src/index.ts";
import type { Kind } from "../../../packages/verifier/src/offer-receipt/statement.ts";

/**
 * The public conformance vectors for `offer-receipt` in the format JWS, version 2
 * (https://scvd.store/.well-known/conformance/offer-receipt-vectors.json). The kid is a label: their key is trusted.
 */
const KEY = {
  kty: "OKP",
  crv: "Ed25519",
  x: Buffer.from("2152f8d19b791d24453242e15f2eab6cb7cffa7b6a5ed30097960e069881db12", "hex").toString("base64url"),
};
const AT = Date.parse("2026-11-29") / 1000;
const HEADER = { alg: "EdDSA", kid: "did:web:scvd.store#conformance-test-key" };
const OFFER = {
  version: 1,
  resourceUrl: "https://example.com/api/buy/widget",
  scheme: "exact",
  network: "eip155:8453",
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  payTo: "0x1111111111111111111111111111111111111111",
  amount: "10000",
  validUntil: 4102444800,
};
const RECEIPT = {
  version: 1,
  network: "eip155:8453",
  resourceUrl: "https://example.com/api/buy/widget",
  payer: "0x2222222222222222222222222222222222222222",
  issuedAt: 1767225600,
  transaction: `0x${"ab".repeat(32)}`,
};
const GOOD = "I3V9b8co0MqWfOrg9NyUfw3FEx_5JZf1l4sb23XKyyNlNXIf1GTl979S1SbGfoluAtK2evPqSanpA9QBI7InAA";

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** Header, payload and signature; null for a JWS without the third part. */
type Vector = readonly [object, object, string | null];
const check = (kind: Kind, [header, payload, signature]: Vector) =>
  checkSigned(
    kind,
    { format: "jws", signature: [part(header), part(payload), ...(signature === null ? [] : [signature])].join(".") },
    { key: KEY, at: AT },
  );

describe("the public vectors", () => {
  test.each<[string, readonly [Kind, object, string], boolean]>([
    ["offer_valid", ["offer", OFFER, GOOD], true],
    [
      "receipt_valid",
      ["receipt", RECEIPT, "ejuDi0c6vesOF34lLIZDZZ2oAKj_Bbfnm87SsyjDWJ_uw1BOLDVZ18vj08qWC7HsKGs-ZxxlrfZc6fVWeLNPBQ"],
      true,
    ],
    [
      "offer_expired_but_wellformed",
      [
        "offer",
        { ...OFFER, validUntil: 1735689600 },
        "2FIYFVeY5oen8Nd3R3cxqWujjvjaItVO77Xu3U62Q35YJONS7RfehMi-JXCKSFNGqWVFjboxW53Ji8Y7CNKkDQ",
      ],
      false,
    ],
  ])("%s is genuine", async (_, [kind, payload, signature], valid) => {
    expect(await check(kind, [HEADER, payload, signature])).toMatchObject({ genuine: true, valid, payload });
  });

  const { version: _, ...unversioned } = OFFER;
  const { payTo: __, ...unpaid } = OFFER;
  const { payer: ___, ...anonymous } = RECEIPT;
  test.each<[string, Vector, RegExp | "unsigned"]>([
    [
      "offer_missing_version",
      [HEADER, unversioned, "KiQp7_L8gCBxlmbqmrz0UOP4T6u-FYH4EkQCWF1rBVT-pWMYPrGFL7IlnXfVew-iSVl-o02kWKOzkRqc_AdnCQ"],
      /version is nothing/,
    ],
    [
      "offer_wrong_key",
      [HEADER, OFFER, "PWrVTn_PFln5UhUs9fAOyJUoT7bnUO9CgLTngFyKGABoHG7ByT34hTYSbSP6pc2sfCSBq2Tei47I12HjjKgyAQ"],
      "unsigned",
    ],
    ["offer_tampered_payload", [HEADER, { ...OFFER, amount: "99999" }, GOOD], "unsigned"],
    ["offer_alg_none", [{ ...HEADER, alg: "none" }, OFFER, ""], /characters that base64url does not have/],
    [
      "offer_alg_confusion_hs256",
      [{ ...HEADER, alg: "HS256" }, OFFER, "8QE55sOamtAtYwzBQyqECpIynuGQn_hDa4yvOr_lPMM"],
      "unsigned",
    ],
    [
      "offer_missing_payTo",
      [HEADER, unpaid, "KKDiYOl59xl7qB7r0eF7siFeSpZCp69DN0CM4YjVjkIactXUznzS5Uda7V29AD6prvIFO4XsGaPRzsvnxlagCQ"],
      /payTo is nothing/,
    ],
    [
      "receipt_missing_payer",
      [HEADER, anonymous, "sT59O1pjWkfYlHROWNgCVPbsuYNGLt1u-25qOsz0iJKmjBKTJyF3iTPXc0X9IbZcuhXJSh7gtno6y-UUZ7zfBQ"],
      /payer is nothing/,
    ],
    [
      "offer_no_kid",
      [
        { alg: "EdDSA" },
        OFFER,
        "Ry3X1qTCVm39jNTafoM41rOFM5g76jy7vJXAmzUlFJVW0SNqPT5nqivvrP-gn33zSt3QIkmuuI8tXfGTVt6MDA",
      ],
      /names no key/,
    ],
    ["offer_two_segments", [HEADER, OFFER, null], /three parts/],
    ["offer_truncated_signature", [HEADER, OFFER, GOOD.slice(0, 43)], "unsigned"],
  ])("%s is refused", async (name, vector, why) => {
    const kind = name.startsWith("receipt") ? "receipt" : "offer";
    if (why === "unsigned") {
      const { genuine, valid, checks } = await check(kind, vector);
      expect({ genuine, valid, checks: checks.filter(({ holds }) => !holds) }).toEqual({
        genuine: false,
        valid: false,
        checks: [{ statement: "the JWS verifies", holds: false }],
      });
      return;
    }
    await expect(check(kind, vector)).rejects.toThrow(InputError);
    await expect(check(kind, vector)).rejects.toThrow(why);
  });
});
