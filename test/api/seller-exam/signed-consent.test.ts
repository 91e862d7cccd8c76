import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import type { Address } from "../../../api/kernel/wallet.ts";
import { type ContractWord, isSignedBy, stillSigned } from "../../../api/seller-exam/signed-consent.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/examiners-fault.ts";

const BEGUN = 1_800_000_000;
const account = privateKeyToAccount(generatePrivateKey());
const text = "x402-exam v1";
const contract = { payTo: `0x${"c0".repeat(20)}`, text, signature: "0x12" } as const;
const own = {
  payTo: account.address.toLowerCase() as Address,
  text,
  signature: await account.signMessage({ message: text }),
};

/** Readings in their order, the last one for good; each takes no time, and each pause passes at once. */
function saying(...words: readonly (ContractWord | "lost")[]) {
  let [at, looks] = [BEGUN * 1000 + 500, 0];
  return {
    looks: () => looks,
    now: () => new Date(at),
    async sleep(ms: number) {
      at += ms;
    },
    async word(): Promise<ContractWord> {
      const said = words[Math.min(looks, words.length - 1)];
      looks += 1;
      if (said === undefined || said === "lost") throw new Error("the node does not answer");
      return said;
    },
  };
}

const yes = { time: BEGUN, isSigned: true };
const no = { time: BEGUN, isSigned: false };
const old = { time: BEGUN - 1, isSigned: true };

test.each([
  ["accepts three times", [yes], [true, 3]],
  ["refuses three times", [no], [false, 3]],
  ["accepts, after a node that lags", [old, yes], [true, 6]],
  ["refuses, after nodes that still show the old word", [old, old, old, no], [false, 6]],
  ["accepts, after a node that was lost", ["lost", yes], [true, 4]],
  ["accepts, after one reading that differs", [yes, yes, no, yes], [true, 6]],
] as const)("what a contract says that %s is its word, after so many readings", async (_, words, expected) => {
  const parts = saying(...words);
  expect([await stillSigned(contract, parts), parts.looks()]).toEqual(expected);
});

test("a contract that never says the same has not consented, and nobody waits for it for long", async () => {
  const parts = saying(...Array.from({ length: 200 }, (_, place) => (place % 2 === 0 ? yes : no)));
  expect(await stillSigned(contract, parts)).toBe(false);
  expect(parts.now().getTime()).toBeLessThan((BEGUN + 25) * 1000);
});

test.each([["lost" as const], [old]])("a chain that does not say it is no fault of the seller: %j", (word) =>
  expect(stillSigned(contract, saying(word))).rejects.toBeInstanceOf(ExaminersFault),
);

test("the signature of a key needs no reading, and stands", async () => {
  const parts = saying("lost");
  expect([await stillSigned(own, parts), parts.looks()]).toEqual([true, 0]);
  expect(await isSignedBy(own, () => Promise.reject(new Error("unread")))).toBe(true);
});

test.each([
  [[true, true, true], true],
  [[false, false, false], false],
  [[true, true, false], null],
  [[false, true, true], null],
])("an order's signature, of which three readings say %j, is signed: %j", async (words, expected) => {
  const left = [...words];
  expect(await isSignedBy(contract, async () => left.shift() ?? false)).toBe(expected);
  expect(left).toEqual([]);
});
