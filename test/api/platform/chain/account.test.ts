import fc from "fast-check";
import type { TransactionSerializableEIP1559 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createAccount } from "../../../../api/platform/chain/accounts.ts";
import { authorizationTypedData } from "../../../../api/platform/chain/authorization.ts";
import { NETWORKS } from "../../../../api/platform/networks.ts";
import type { Hex } from "../../../../api/platform/wallet.ts";

const KEY: Hex = `0x${"a1".repeat(32)}`;
const [ours, viems] = [createAccount(KEY), privateKeyToAccount(KEY)];
const hex = (most: number, least = most) =>
  fc.uint8Array({ minLength: least, maxLength: most }).map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
const amount = (bits: bigint) => fc.bigInt({ min: 0n, max: 2n ** bits - 1n });

test("an account signs any transaction as viem's does, byte for byte", () => {
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
      expect(ours.signTransaction(transaction)).toBe(await viems.signTransaction(transaction));
    }),
    { numRuns: 30 },
  );
});

test("it signs typed data and digests so too", async () => {
  const authorization = { from: ours.address, to: ours.address, value: 1n, validAfter: 0n, validBefore: 2n ** 40n };
  const typed = authorizationTypedData({ ...authorization, nonce: `0x${"07".repeat(32)}` }, NETWORKS["eip155:8453"]);
  const hash: Hex = `0x${"5a".repeat(32)}`;
  expect(ours.address).toBe(viems.address.toLowerCase());
  expect(await ours.signTypedData(typed)).toBe(await viems.signTypedData(typed));
  expect(ours.sign(hash)).toBe(await viems.sign({ hash }));
});
