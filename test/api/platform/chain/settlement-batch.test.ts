import { encodeAbiParameters, encodeEventTopics, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { outcomePurpose, servedBy } from "../../../../api/escrow/calldata.ts";
import { batchCall, failedPlaces, isPackable } from "../../../../api/payments/settle/settlement-batch.ts";
import { MULTICALL3 } from "../../../../api/platform/chain/read-at-block.ts";
import { escrowAbi } from "../../../../contracts/abi.ts";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../../../contracts/settlement-batch.ts";
import { BASE, highS, type Signed, settleCall, signPayment } from "../../../support/payments/signing.ts";

const USDC = BASE.usdc.address;
const PAY_TO = "0x00000000000000000000000000000000c0ffee01";
const signed = await Promise.all(
  Array.from({ length: 40 }, (_, number) => {
    const payer = privateKeyToAccount(`0x${(number + 1).toString(16).padStart(64, "0")}`);
    return signPayment(payer, {
      value: BigInt(number) * 10n ** 9n + 1n,
      validAfter: BigInt(number),
      validBefore: 2n ** 40n - 1n,
    });
  }),
);

test("The calldata follows the contract's layout for any signatures", () => {
  const { to, data, gas } = batchCall({ usdc: USDC, payTo: PAY_TO }, signed);
  const expected = settleCall(signed, { token: USDC, to: PAY_TO, gasCap: 100_000n });
  expect([to, data.toLowerCase()]).toEqual([SETTLEMENT_BATCH.address, expected.toLowerCase()]);
  // A call gets its full cap only if 64/63 of it remain in addition to the loop's gas.
  expect(gas).toBeGreaterThan((BigInt(signed.length) * 100_000n * 64n) / 63n);
});

describe("Payments that cannot be batched", () => {
  const [one] = signed as [Signed, ...Signed[]];
  const { authorization, signature } = one;
  const rows: [string, Partial<Signed["authorization"]>, Hex][] = [
    ["an amount of 2^64", { value: 2n ** 64n }, signature],
    ["a start of 2^40", { validAfter: 2n ** 40n }, signature],
    ["an end of 2^40", { validBefore: 2n ** 40n }, signature],
    ["the high-s copy of a signature", {}, highS(signature)],
    ["a v other than 27 or 28", {}, `${signature.slice(0, -2)}00` as Hex],
    ["a wallet's signature of another length", {}, `${signature}00`],
    ["a compact signature", {}, signature.slice(0, -2) as Hex],
  ];
  test.each(rows)("A payment with %s is sent alone", (_, changes, given) => {
    expect(isPackable({ authorization, signature })).toBe(true);
    expect(isPackable({ authorization: { ...authorization, ...changes }, signature: given })).toBe(false);
  });
});

describe("Failed calls in a receipt", () => {
  const [topic] = encodeEventTopics({ abi: settlementBatchAbi, eventName: "Unsettled" });
  const log = (address: Hex, failed: bigint) => ({
    address,
    topics: [topic],
    data: encodeAbiParameters([{ type: "uint256" }, { type: "uint256" }], [failed, 0n]),
  });
  const receipt = (to: Hex, ...logs: ReturnType<typeof log>[]) => ({ to, logs }) as never;

  test.each([
    ["no failed call if all settled", receipt(SETTLEMENT_BATCH.address), []],
    [
      "the first and the last",
      receipt(SETTLEMENT_BATCH.address, log(SETTLEMENT_BATCH.address, 1n | (1n << 255n))),
      [1, 256],
    ],
    ["no failed call if another contract emitted the event", receipt(SETTLEMENT_BATCH.address, log(USDC, 1n)), []],
    ["no failed call if another contract was called", receipt(USDC, log(SETTLEMENT_BATCH.address, 1n)), []],
  ])("The receipt shows %s", (_, given, places) => {
    expect(failedPlaces(given)).toEqual(places);
  });
});

describe("Batches of outcomes", () => {
  test("The events of a mined transaction identify the outcomes that it served", () => {
    const [one, other] = [`0x${"01".repeat(32)}`, `0x${"02".repeat(32)}`] as const;
    const log = (eventName: "Released" | "Refunded" | "Credited", id: typeof one | typeof other) => ({
      topics: encodeEventTopics({ abi: escrowAbi, eventName, args: { id, payer: MULTICALL3, receiver: MULTICALL3 } }),
    });
    const logs = [log("Credited", one), log("Released", one), log("Refunded", other), { topics: [] }];
    const served = [outcomePurpose(one, "release"), outcomePurpose(other, "refund")];
    expect(servedBy({ to: MULTICALL3, logs } as never)).toEqual(served);
    expect(servedBy({ to: one.slice(0, 42), logs } as never)).toBe(null);
  });
});
