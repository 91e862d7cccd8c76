import { encodeFunctionData, parseAbi, zeroAddress } from "viem";
import { describe, expect, test } from "vitest";
import {
  dayOf,
  directTerms,
  isBetweenOthers,
  orderedPair,
  reachesFloor,
  WINDOW_DAYS,
  withAge,
} from "../../indexer/ledger.ts";

const ALICE = "0x00000000000000000000000000000000000a11ce";
const BOB = "0x0000000000000000000000000000000000000b0b";
const SERVICE = "0x00000000000000000000000000000000c0ffee01";
const USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
const NONCE = `0x${"7e".repeat(32)}` as const;

const base64 = (bytes: readonly number[]) => Buffer.from(bytes).toString("base64");

describe("a day's ages", () => {
  test("An age of the window's width has no effect, like no earlier transfer", () => {
    expect(withAge(null, null)).toBeNull();
    expect(withAge(null, WINDOW_DAYS)).toBeNull();
    expect(withAge(null, WINDOW_DAYS - 1)).toBe(base64([89, 0, 0, 1]));
  });

  test("Ages have running counts from the youngest to the oldest", () => {
    const ages = [7, 9, 7, 6, 10].map((age) => (before: string | null) => withAge(before, age));
    const [seven, nine, again, six, ten] = ages.map((_, n) =>
      ages.slice(0, n + 1).reduce<string | null>((all, add) => add(all), null),
    );
    expect([seven, nine]).toEqual([base64([7, 0, 0, 1]), base64([7, 0, 0, 1, 0, 0, 1, 0, 0, 2])]);
    expect(again).toBe(base64([7, 0, 0, 2, 0, 0, 2, 0, 0, 3]));
    expect(six).toBe(base64([6, 0, 0, 1, 0, 0, 3, 0, 0, 3, 0, 0, 4]));
    expect(ten).toBe(base64([6, 0, 0, 1, 0, 0, 3, 0, 0, 3, 0, 0, 4, 0, 0, 5]));
    expect(withAge(base64([3, 0, 255, 255]), 3)).toBe(base64([3, 1, 0, 0]));
  });
});

test("A day is a UTC calendar day", () => {
  expect(dayOf(86_399n)).toBe(0);
  expect(dayOf(86_400n)).toBe(1);
});

test("Two wallets share one row in either direction of payment", () => {
  expect(orderedPair(ALICE, BOB)).toEqual(orderedPair(BOB, ALICE));
});

describe("a transfer between two others", () => {
  const own = new Set<`0x${string}`>([SERVICE]);
  test.each([
    ["a payment", { from: ALICE, to: BOB, value: 1n }, true],
    ["a transfer to oneself", { from: ALICE, to: ALICE, value: 1n }, false],
    ["a payment to the service", { from: ALICE, to: SERVICE, value: 1n }, false],
    ["a payment by the service", { from: SERVICE, to: ALICE, value: 1n }, false],
    ["a transfer of zero", { from: ALICE, to: BOB, value: 0n }, false],
    ["minting", { from: zeroAddress, to: ALICE, value: 1n }, false],
    ["burning", { from: ALICE, to: zeroAddress, value: 1n }, false],
  ] as const)("Only a positive payment between two other wallets counts: %s", (_, movement, counts) => {
    expect(isBetweenOthers(movement, own)).toBe(counts);
  });
});

test.each([
  [0n, 49_999n, false],
  [0n, 50_000n, true],
  [49_999n, 1n, true],
  [49_998n, 1n, false],
  [50_000n, 50_000n, false],
])("After payments of %s, another payment of %s makes its payee a counterparty: %s", (sumBefore, value, reached) => {
  expect(reachesFloor(sumBefore, value)).toBe(reached);
});

describe("the terms of an authorized payment", () => {
  const CALLS = parseAbi([
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
    "function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
    "function transfer(address to, uint256 value)",
  ]);
  const CALLS_VRS = parseAbi([
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
    "function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  ]);
  const terms = [ALICE, BOB, 250_000n, 0n, 2n ** 40n, NONCE] as const;
  const vrs = [27, NONCE, NONCE] as const;
  const read = (input: string, to: string = USDC, nonce: string = NONCE) =>
    directTerms({ transaction: { to, input }, usdc: USDC, authorizer: ALICE, nonce });
  const direct = encodeFunctionData({ abi: CALLS, functionName: "transferWithAuthorization", args: [...terms, "0x"] });

  test.each([
    direct,
    encodeFunctionData({ abi: CALLS, functionName: "receiveWithAuthorization", args: [...terms, "0x"] }),
    encodeFunctionData({ abi: CALLS_VRS, functionName: "transferWithAuthorization", args: [...terms, ...vrs] }),
    encodeFunctionData({ abi: CALLS_VRS, functionName: "receiveWithAuthorization", args: [...terms, ...vrs] }),
  ])("They are read from the input if the transaction is the call itself: %.10s", (input) => {
    expect(read(input)).toEqual({ to: BOB, value: 250_000n });
  });

  test("They are not read from a call to another contract or function, or with another nonce or payer", () => {
    expect(read(direct, "0xca11bde05977b3631167028862be2a173976ca11")).toBeNull();
    expect(read(direct, USDC, `0x${"00".repeat(32)}`)).toBeNull();
    expect(
      directTerms({ transaction: { to: USDC, input: direct }, usdc: USDC, authorizer: BOB, nonce: NONCE }),
    ).toBeNull();
    expect(
      read(encodeFunctionData({ abi: CALLS, functionName: "transfer", args: [BOB, 1n] }) + direct.slice(10)),
    ).toBeNull();
  });
});
