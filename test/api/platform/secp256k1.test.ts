import fc from "fast-check";
import { type Hex, recoverAddress } from "viem";
import { privateKeyToAccount, sign } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { accountOf, signDigest, signerOf } from "../../../api/platform/chain/accounts.ts";

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const FIELD = 2n ** 256n - 2n ** 32n - 977n;
const word = (value: bigint): string => value.toString(16).padStart(64, "0");

const words = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
const keys = words.filter((key) => BigInt(key) > 0n && BigInt(key) < ORDER);
const edges = [0n, 1n, 2n, ORDER >> 1n, (ORDER >> 1n) + 1n, ORDER - 1n, ORDER, ORDER + 1n, FIELD - ORDER, FIELD];
const scalars = fc.oneof(
  fc.constantFrom(...edges, FIELD + 1n, 2n ** 256n - 1n).map(word),
  words.map((value) => value.slice(2)),
);

/** The signer as viem finds it; null if it finds none. */
const byViem = (hash: Hex, signature: Hex): Promise<string | null> =>
  recoverAddress({ hash, signature }).then(
    (address) => address.toLowerCase(),
    () => null,
  );

describe("the signer of a digest is viem's", () => {
  test("for each signature, and for its copy with a high s", () =>
    fc.assert(
      fc.asyncProperty(keys, words, async (privateKey, hash) => {
        const address = privateKeyToAccount(privateKey).address.toLowerCase();
        const signature = await sign({ hash, privateKey, to: "hex" });
        const s = word(ORDER - BigInt(`0x${signature.slice(66, 130)}`));
        const high: Hex = `0x${signature.slice(2, 66)}${s}${signature.endsWith("1b") ? "1c" : "1b"}`;
        expect([signerOf(hash, signature), signerOf(hash, high)]).toEqual([address, address]);
      }),
      { numRuns: 20 },
    ));

  test("for any r and s, also where there is none", async () => {
    const found = { signer: 0, nobody: 0 };
    await fc.assert(
      fc.asyncProperty(fc.tuple(scalars, scalars, fc.constantFrom("1b", "1c")), words, async (parts, digest) => {
        const signature: Hex = `0x${parts.join("")}`;
        const signer = signerOf(digest, signature);
        expect(signer).toBe(await byViem(digest, signature));
        found[signer === null ? "nobody" : "signer"]++;
      }),
      { numRuns: 150 },
    );
    expect(Math.min(found.signer, found.nobody)).toBeGreaterThan(10);
  });

  test.each<[string, Hex]>([
    ["zero", `0x${"00".repeat(32)}`],
    ["the order", `0x${word(ORDER)}`],
    ["beyond the order", `0x${"ff".repeat(32)}`],
  ])("when the digest is %s", async (_, hash) => {
    const privateKey: Hex = `0x${"a1".repeat(32)}`;
    const signature = await sign({ hash, privateKey, to: "hex" });
    expect(signerOf(hash, signature)).toBe(privateKeyToAccount(privateKey).address.toLowerCase());
  });
});

test("nobody signs with another v than 27 and 28, or with other than 65 bytes", async () => {
  const hash: Hex = `0x${"5a".repeat(32)}`;
  const signature = await sign({ hash, privateKey: `0x${"a1".repeat(32)}`, to: "hex" });
  const others = Array.from({ length: 256 }, (_, v) => v).filter((v) => v !== 27 && v !== 28);
  const withV = (v: number) => `${signature.slice(0, 130)}${v.toString(16).padStart(2, "0")}` as Hex;
  const malformed = ["0x", signature.slice(0, 130), `${signature}00`, `${signature.slice(0, 130)}zz`] as Hex[];
  expect(others.map(withV).filter((other) => signerOf(hash, other) !== null)).toEqual([]);
  expect(malformed.filter((other) => signerOf(hash, other) !== null)).toEqual([]);
});

describe("a signature and the address of a key", () => {
  test("are viem's, byte for byte", () =>
    fc.assert(
      fc.asyncProperty(keys, words, async (privateKey, hash) => {
        expect(signDigest(hash, privateKey)).toBe(await sign({ hash, privateKey, to: "hex" }));
        expect(accountOf(privateKey)).toBe(privateKeyToAccount(privateKey).address.toLowerCase());
      }),
      { numRuns: 20 },
    ));

  test.each<[string, bigint]>([
    ["zero", 0n],
    ["the order", ORDER],
    ["beyond the order", 2n ** 256n - 1n],
  ])("are refused if the key is %s", (_, key) => {
    expect(() => signDigest(`0x${"5a".repeat(32)}`, `0x${word(key)}`)).toThrow("private key");
    expect(() => accountOf(`0x${word(key)}`)).toThrow("private key");
  });
});
