import fc from "fast-check";
import { encodeEventTopics, encodeFunctionData, parseAbi } from "viem";
import { expect, test } from "vitest";
import { aggregateData, authorizeData, endingData, holdsData } from "../../../api/adapters/chain/escrow-calldata.ts";
import { MULTICALL3 } from "../../../api/adapters/chain/multicall.ts";
import { outcomePurpose, servedBy } from "../../../api/adapters/chain/outcome-batch.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import { anyAddress, anyBytes, anyBytes32, anyTerms } from "../../support/escrow/any-terms.ts";

// What is put together by hand is what viem encodes by the ABI.

test("a hold", () => {
  fc.assert(
    fc.property(anyTerms, anyAddress, anyBytes, (info, collector, signature) => {
      const args = [info, info.maxAmount, collector, signature] as const;
      expect(authorizeData({ info, collector, signature })).toBe(
        encodeFunctionData({ abi: escrowAbi, functionName: "authorize", args }),
      );
    }),
  );
});

test.each(["release", "refund"] as const)("a %s", (decision) => {
  fc.assert(
    fc.property(anyTerms, anyBytes32, anyBytes, (info, record, verdict) => {
      const args = [info, record, verdict] as const;
      expect(endingData({ decision, info, record, verdict })).toBe(
        encodeFunctionData({ abi: escrowAbi, functionName: decision, args }),
      );
    }),
  );
});

test("holds of one contract", () => {
  fc.assert(
    fc.property(anyAddress, fc.bigInt({ min: 0n, max: 2n ** 64n }), fc.array(anyBytes), (contract, cap, calls) => {
      const args = [contract, cap, calls] as const;
      expect(holdsData(contract, cap, calls)).toBe(
        encodeFunctionData({ abi: settlementBatchAbi, functionName: "hold", args }),
      );
    }),
  );
});

const AGGREGATE = parseAbi([
  "struct Call3 { address target; bool allowFailure; bytes callData; }",
  "function aggregate3(Call3[] calls)",
]);

test("several calls, each of which may fail", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ to: anyAddress, data: anyBytes })), (calls) => {
      const args = [calls.map(({ to: target, data: callData }) => ({ target, allowFailure: true, callData }))] as const;
      expect(aggregateData(calls)).toBe(encodeFunctionData({ abi: AGGREGATE, functionName: "aggregate3", args }));
    }),
  );
});

test("what a mined transaction of outcomes has served, it says in its events", () => {
  const [one, other] = [`0x${"01".repeat(32)}`, `0x${"02".repeat(32)}`] as const;
  const log = (eventName: "Released" | "Refunded" | "Credited", id: typeof one | typeof other) => ({
    topics: encodeEventTopics({ abi: escrowAbi, eventName, args: { id, payer: MULTICALL3, receiver: MULTICALL3 } }),
  });
  const logs = [log("Credited", one), log("Released", one), log("Refunded", other), { topics: [] }];
  const served = [outcomePurpose(one, "release"), outcomePurpose(other, "refund")];
  expect(servedBy({ to: MULTICALL3, logs } as never)).toEqual(served);
  expect(servedBy({ to: one.slice(0, 42), logs } as never)).toBe(null);
});
