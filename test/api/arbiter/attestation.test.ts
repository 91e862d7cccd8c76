import { createHash } from "node:crypto";
import fc from "fast-check";
import { keccak256, recoverTypedDataAddress, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { type Attestation, attest, type VerdictFacts } from "../../../api/arbiter/attestation.ts";
import { createAccount } from "../../../api/platform/chain/accounts.ts";

const CHAIN_ID = 8453;
const KEY = `0x${"a1".repeat(32)}` as const;
const ARBITER = privateKeyToAccount(KEY);
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const FACTS: VerdictFacts = {
  id: "0123456789abcdef",
  outcome: "release",
  conditionsSha256: sha256("conditions"),
  dealRef: "order 17",
  issuedAt: new Date("2026-11-22T01:02:03.999Z"),
};
const anyFacts: fc.Arbitrary<VerdictFacts> = fc.record({
  id: fc.stringMatching(/^[0-9a-f]{16}$/),
  outcome: fc.constantFrom("release", "refund", "escalate"),
  conditionsSha256: fc.string().map(sha256),
  dealRef: fc.option(fc.string({ unit: "binary", maxLength: 120 })),
  issuedAt: fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true }),
});

/** Reads an attestation back from the document's JSON, as a client does. */
const read = (attestation: Attestation) => {
  const { message, ...rest } = JSON.parse(JSON.stringify(attestation)) as Attestation;
  return { ...rest, message: { ...message, issuedAt: BigInt(message.issuedAt) } };
};

describe("attestation of a verdict", () => {
  test("The document contains the typed data, the signer, and the signature", async () => {
    expect(await attest(FACTS, CHAIN_ID, createAccount(KEY))).toStrictEqual({
      domain: { name: "Agent Payment Trust Arbiter", version: "1", chainId: 8453 },
      types: {
        Verdict: [
          { name: "id", type: "string" },
          { name: "outcome", type: "string" },
          { name: "conditionsSha256", type: "bytes32" },
          { name: "dealRefHash", type: "bytes32" },
          { name: "issuedAt", type: "uint64" },
        ],
      },
      primaryType: "Verdict",
      message: {
        id: "0123456789abcdef",
        outcome: "release",
        conditionsSha256: `0x${sha256("conditions")}`,
        dealRefHash: keccak256(toHex("order 17")),
        issuedAt: 1_795_309_323,
      },
      signer: ARBITER.address.toLowerCase(),
      signature: expect.stringMatching(/^0x[0-9a-f]{128}1[bc]$/),
    });
  });

  test("A claim without `deal_ref` is attested with the hash of the empty string.", async () => {
    const { message } = await attest({ ...FACTS, dealRef: null }, CHAIN_ID, createAccount(KEY));
    expect(message.dealRefHash).toBe(keccak256("0x"));
  });

  test("The signature equals viem's for the same typed data, and `signer` is the address it recovers to.", async () => {
    const property = fc.asyncProperty(anyFacts, fc.integer({ min: 1, max: 2 ** 40 }), async (facts, chainId) => {
      const key = generatePrivateKey();
      const account = privateKeyToAccount(key);
      const { signature, signer, ...signed } = read(await attest(facts, chainId, createAccount(key)));
      expect(signature).toBe(await account.signTypedData(signed));
      expect(signer).toBe(account.address.toLowerCase());
      expect(await recoverTypedDataAddress({ ...signed, signature })).toBe(account.address);
    });
    await fc.assert(property, { numRuns: 50 });
  });
});
