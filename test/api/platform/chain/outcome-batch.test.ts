import { encodeEventTopics } from "viem";
import { expect, test } from "vitest";
import { outcomePurpose, servedBy } from "../../../../api/escrow/calldata.ts";
import { MULTICALL3 } from "../../../../api/platform/chain/read-at-block.ts";
import { escrowAbi } from "../../../../contracts/abi.ts";

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
