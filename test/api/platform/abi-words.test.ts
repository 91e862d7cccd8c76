import fc from "fast-check";
import { encodeAbiParameters, getAddress, type Hex, hashTypedData } from "viem";
import { describe, expect, test } from "vitest";
import {
  addressWord,
  bytes32Word,
  domainHash,
  textWord,
  typedDigest,
  typeHash,
  uintWord,
} from "../../../api/platform/chain/typed-data.ts";
import { anyAddress, anyBytes32 } from "../../support/escrow/any-terms.ts";

// The words are viem's, over everything that a type can hold; what does not fit has none.

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
test("a number has viem's word where it fits its type, and none where it does not", () => {
  const widths = fc.integer({ min: 1, max: 32 }).map((bytes) => bytes * 8);
  const check = (bits: number, value: bigint) => {
    expect(orThrown(() => uintWord(value, bits))).toBe(orThrown(() => encoded(`uint${bits}`, value)));
  };
  fc.assert(fc.property(widths, fc.bigInt({ min: -4n, max: 2n ** 257n }), check));
  fc.assert(
    fc.property(widths, fc.integer({ min: -2, max: 2 }), (bits, off) => check(bits, 2n ** BigInt(bits) + BigInt(off))),
  );
});

test("a number that is not whole has no word", () => {
  for (const value of [0.5, -0.5, Number.NaN, Number.POSITIVE_INFINITY, -1]) expect(() => uintWord(value)).toThrow();
  expect(uintWord(-0)).toBe("0".repeat(WORD));
});

test("an address has viem's word, however it is spelled", () => {
  fc.assert(
    fc.property(anyAddress, (address) => {
      const word = encoded("address", address);
      for (const spelled of [address, getAddress(address), upper(address)]) expect(addressWord(spelled)).toBe(word);
    }),
  );
});

const ADDRESS = `0x${"ab".repeat(20)}`;
test.each([
  ["19 bytes", ADDRESS.slice(0, -2)],
  ["20 bytes and a half", `${ADDRESS}0`],
  ["21 bytes", `${ADDRESS}00`],
  ["no prefix", ADDRESS.slice(2)],
  ["a digit that is none", `${ADDRESS.slice(0, -1)}g`],
  ["a line's end", `${ADDRESS}\n`],
  ["a space before it", ` ${ADDRESS}`],
  ["nothing", "0x"],
])("what has %s is no address, to viem neither", (_, text) => {
  expect(() => addressWord(text as Hex)).toThrow();
  expect(() => encoded("address", text)).toThrow();
});

test("32 bytes have viem's word, and fewer or more have none", () => {
  fc.assert(
    fc.property(anyBytes32, (bytes) => {
      expect(bytes32Word(bytes)).toBe(encoded("bytes32", bytes));
      expect(bytes32Word(upper(bytes))).toBe(encoded("bytes32", bytes));
      for (const other of [bytes.slice(0, -1), bytes.slice(0, -2), `${bytes}0`, `${bytes}00`, `${bytes}\n`])
        expect(() => bytes32Word(other as Hex)).toThrow();
    }),
  );
});

describe("typed data", () => {
  /** Also halves of pairs, which UTF-8 has no bytes for. */
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

  test("has viem's digest: any domain, any struct of plain members", () => {
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
        // An empty text of a domain is no member of it to viem.
        fc.pre(domain.name !== "" && domain.version !== "");
        expect(typedDigest(domainHash(domain), struct)).toBe(
          hashTypedData({ domain, types, primaryType: name, message } as never),
        );
      }),
    );
  });
});
