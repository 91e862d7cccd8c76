import fc from "fast-check";
import {
  encodeAbiParameters,
  getAddress,
  hashTypedData,
  recoverAddress,
  type TransactionSerializableEIP1559,
  toHex,
  keccak256 as viems,
} from "viem";
import { privateKeyToAccount, sign } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { accountOf, createAccount, signDigest, signerOf } from "../../../api/platform/chain/accounts.ts";
import {
  addressWord,
  bytes32Word,
  domainHash,
  keccak256,
  textWord,
  typedDigest,
  typeHash,
  uintWord,
} from "../../../api/platform/chain/typed-data.ts";
import type { Hex } from "../../../api/platform/wallet.ts";
import { anyAddress, anyBytes32 } from "../../support/escrow/any-terms.ts";

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

/** Returns the signer that viem recovers, or null if there is none. */
const byViem = (hash: Hex, signature: Hex): Promise<string | null> =>
  recoverAddress({ hash, signature }).then(
    (address) => address.toLowerCase(),
    () => null,
  );

describe("Signer recovery", () => {
  test("The recovered signer equals viem's for a signature and for its high-s copy", () =>
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

  test("The recovered signer equals viem's for any r and s, including values without a signer", async () => {
    const found = { signer: 0, none: 0 };
    await fc.assert(
      fc.asyncProperty(fc.tuple(scalars, scalars, fc.constantFrom("1b", "1c")), words, async (parts, digest) => {
        const signature: Hex = `0x${parts.join("")}`;
        const signer = signerOf(digest, signature);
        expect(signer).toBe(await byViem(digest, signature));
        found[signer === null ? "none" : "signer"]++;
      }),
      { numRuns: 150 },
    );
    expect(Math.min(found.signer, found.none)).toBeGreaterThan(10);
  });
});

test("A signature has no signer unless it has 65 bytes and a v of 27 or 28", async () => {
  const hash: Hex = `0x${"5a".repeat(32)}`;
  const signature = await sign({ hash, privateKey: `0x${"a1".repeat(32)}`, to: "hex" });
  const others = Array.from({ length: 256 }, (_, v) => v).filter((v) => v !== 27 && v !== 28);
  const withV = (v: number) => `${signature.slice(0, 130)}${v.toString(16).padStart(2, "0")}` as Hex;
  const malformed = ["0x", signature.slice(0, 130), `${signature}00`, `${signature.slice(0, 130)}zz`] as Hex[];
  expect(others.map(withV).filter((other) => signerOf(hash, other) !== null)).toEqual([]);
  expect(malformed.filter((other) => signerOf(hash, other) !== null)).toEqual([]);
});

describe("Signing and addresses", () => {
  test("Signatures and addresses equal viem's byte for byte", () =>
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
    ["above the order", 2n ** 256n - 1n],
  ])("A private key is refused if it is %s", (_, key) => {
    expect(() => signDigest(`0x${"5a".repeat(32)}`, `0x${word(key)}`)).toThrow("private key");
    expect(() => accountOf(`0x${word(key)}`)).toThrow("private key");
  });
});

describe("keccak", () => {
  test("The hash of any bytes equals viem's, for bytes and for hex", () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
        expect(keccak256(bytes)).toBe(viems(bytes));
        expect(keccak256(toHex(bytes))).toBe(viems(bytes));
      }),
    ));

  test.each([0, 135, 136, 137, 16_384, 16_385, 100_000])("The hash of %i bytes equals viem's", (length) => {
    const bytes = new Uint8Array(length).map((_, at) => at);
    expect(keccak256(bytes)).toBe(viems(bytes));
  });
});

describe("Calldata words", () => {
  // Each word equals viem's for every value of the type, and other values are refused.

  const WORD = 64;
  const encoded = (type: string, value: unknown): string => encodeAbiParameters([{ type }], [value as never]).slice(2);
  const orThrown = (make: () => string): string | null => {
    try {
      return make();
    } catch {
      return null;
    }
  };

  const upper = (hex: Hex): Hex => `0x${hex.slice(2).toUpperCase()}`;
  test("A number has viem's word if it fits its type and is refused otherwise", () => {
    const widths = fc.integer({ min: 1, max: 32 }).map((bytes) => bytes * 8);
    const check = (bits: number, value: bigint) => {
      expect(orThrown(() => uintWord(value, bits))).toBe(orThrown(() => encoded(`uint${bits}`, value)));
    };
    fc.assert(fc.property(widths, fc.bigInt({ min: -4n, max: 2n ** 257n }), check));
    fc.assert(
      fc.property(widths, fc.integer({ min: -2, max: 2 }), (bits, off) =>
        check(bits, 2n ** BigInt(bits) + BigInt(off)),
      ),
    );
  });

  test("A number that is negative or not whole is refused", () => {
    for (const value of [0.5, -0.5, Number.NaN, Number.POSITIVE_INFINITY, -1]) expect(() => uintWord(value)).toThrow();
    expect(uintWord(-0)).toBe("0".repeat(WORD));
  });

  test("An address in any letter case has viem's word", () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        const word = encoded("address", address);
        for (const spelled of [address, getAddress(address), upper(address)]) expect(addressWord(spelled)).toBe(word);
      }),
    );
  });

  test("Exactly 32 bytes have viem's word, and other lengths are refused", () => {
    fc.assert(
      fc.property(anyBytes32, (bytes) => {
        expect(bytes32Word(bytes)).toBe(encoded("bytes32", bytes));
        expect(bytes32Word(upper(bytes))).toBe(encoded("bytes32", bytes));
        for (const other of [bytes.slice(0, -1), bytes.slice(0, -2), `${bytes}0`, `${bytes}00`, `${bytes}\n`])
          expect(() => bytes32Word(other as Hex)).toThrow();
      }),
    );
  });

  describe("Typed data", () => {
    /** Includes lone surrogates, which UTF-8 cannot encode. */
    const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));
    const anyMember = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }).map((value) => ({ type: "uint256", value, word: uintWord(value) })),
      fc.nat(65_535).map((value) => ({ type: "uint16", value, word: uintWord(value, 16) })),
      fc.boolean().map((value) => ({ type: "bool", value, word: uintWord(value ? 1 : 0) })),
      anyAddress.map((value) => ({ type: "address", value, word: addressWord(value) })),
      anyBytes32.map((value) => ({ type: "bytes32", value, word: bytes32Word(value) })),
      anyText.map((value) => ({ type: "string", value, word: textWord(value) })),
    );
    const anyName = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,20}$/);
    const anyMembers = fc.array(anyMember, { maxLength: 8 });

    test("Any domain and any struct of plain members have viem's digest", () => {
      const anyDomain = fc.record({
        name: anyText,
        version: anyText,
        chainId: fc.maxSafeNat(),
        verifyingContract: anyAddress,
      });
      fc.assert(
        fc.property(anyDomain, anyName, anyMembers, (domain, name, members) => {
          fc.pre(name !== "EIP712Domain");
          const named = members.map((member, place) => ({ ...member, name: `m${place}` }));
          const types = { [name]: named.map(({ name: member, type }) => ({ name: member, type })) };
          const message = Object.fromEntries(named.map(({ name: member, value }) => [member, value]));
          const struct = typeHash(name, named) + named.map(({ word }) => word).join("");
          // viem omits empty strings from the domain.
          fc.pre(domain.name !== "" && domain.version !== "");
          expect(typedDigest(domainHash(domain), struct)).toBe(
            hashTypedData({ domain, types, primaryType: name, message } as never),
          );
        }),
      );
    });
  });
});

describe("Accounts", () => {
  const KEY: Hex = `0x${"a1".repeat(32)}`;
  const [ours, viems] = [createAccount(KEY), privateKeyToAccount(KEY)];
  const hex = (most: number, least = most) =>
    fc.uint8Array({ minLength: least, maxLength: most }).map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
  const amount = (bits: bigint) => fc.bigInt({ min: 0n, max: 2n ** bits - 1n });

  test("An account signs any transaction as viem does, byte for byte", () => {
    const any: fc.Arbitrary<TransactionSerializableEIP1559> = fc.record({
      type: fc.constant("eip1559" as const),
      chainId: fc.constantFrom(8453, 84532),
      nonce: fc.nat(),
      gas: amount(24n),
      maxFeePerGas: amount(60n).map((fee) => fee + 2n ** 40n),
      maxPriorityFeePerGas: amount(40n),
      to: hex(20),
      data: hex(400, 0),
      value: fc.constant(0n),
    });
    return fc.assert(
      fc.asyncProperty(any, async (transaction) => {
        expect(await ours.signTransaction(transaction)).toBe(await viems.signTransaction(transaction));
      }),
      { numRuns: 30 },
    );
  });
});
