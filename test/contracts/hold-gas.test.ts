import { type Address, decodeFunctionResult, encodeFunctionData, type Hex, parseEventLogs } from "viem";
import { expect, test } from "vitest";
import type { SignedHold } from "../../api/payments/schemes/escrowed.ts";
import { authorizeData, HOLD_GAS, holdsOf } from "../../api/payments/settle/holds.ts";
import { escrowAbi } from "../../contracts/abi.ts";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../contracts/settlement-batch.ts";
import { artifactOf } from "../support/chain/contracts.ts";
import { connectCommerce, LOCAL_BASE, onLocalBase } from "../support/chain/usdc-chain.ts";
import { deployEscrow, deployOperator, type EscrowChain, signSale } from "./escrow-chain.ts";

// Measures holds of ordinary accounts with Circle's USDC behind its proxy. The gas caps must have room for the most
// expensive one.

const HOLD = { abi: settlementBatchAbi, functionName: "hold" } as const;

async function signedHold(escrow: EscrowChain): Promise<SignedHold> {
  const { info, signature } = await signSale(escrow, { merchantHas: 0n });
  const { address: contract, collector } = escrow;
  return { contract, collector, info, nonce: "0x", signature };
}

/** The least gas cap with which a single hold in a batch succeeds. */
async function leastCap({ client }: EscrowChain, hold: SignedHold): Promise<bigint> {
  let [little, enough] = [20_000n, 400_000n];
  while (enough - little > 1n) {
    const cap = (little + enough) / 2n;
    const data = encodeFunctionData({ ...HOLD, args: [hold.contract, cap, [authorizeData(hold)]] });
    const answer = await client.call({ to: SETTLEMENT_BATCH.address, data });
    const [failed] = decodeFunctionResult({ ...HOLD, data: answer.data ?? "0x" });
    [little, enough] = failed === 0n ? [little, cap] : [cap, enough];
  }
  return enough;
}

/** The gas of a transaction and the number of its holds. */
async function sent({ client, relayer, address }: EscrowChain, call: { to: Address; data: Hex; gas: bigint }) {
  const hash = await client.sendTransaction({ account: relayer, chain: null, ...call });
  const { gasUsed, logs } = await client.waitForTransactionReceipt({ hash });
  return { gasUsed, held: parseEventLogs({ abi: escrowAbi, eventName: "Held", logs }).length, address };
}

test.each([
  ["the escrow", { deploy: deployEscrow, caps: HOLD_GAS.own, ceiling: 90_000n }],
  ["the operator", { deploy: deployOperator, caps: HOLD_GAS.operator, ceiling: 145_000n }],
] as const)("Holds of %s stay within their caps and cost less together", async (_, { deploy, caps, ceiling }) => {
  await onLocalBase(async (chain) => {
    const { deployedBytecode: bytecode } = artifactOf("SettlementBatch");
    await chain.client.setCode({ address: SETTLEMENT_BATCH.address, bytecode });
    const escrow = await deploy(chain);
    // There was no hold before, so every account involved gets its first USDC.
    const first = await signedHold(escrow);
    const least = await leastCap(escrow, first);
    expect(least).toBeLessThan((caps.call * 9n) / 10n);
    expect(least).toBeGreaterThan(caps.call / 2n);
    const sharing = holdsOf(first.contract);
    const alone = await sent(escrow, sharing.single(first));
    expect(alone.held).toBe(1);
    expect(alone.gasUsed).toBeLessThan((caps.single * 9n) / 10n);
    const ten: SignedHold[] = [];
    while (ten.length < 10) ten.push(await signedHold(escrow));
    const together = await sent(escrow, sharing.several(ten));
    expect(together.held).toBe(10);
    expect(together.gasUsed / 10n).toBeLessThan(ceiling);
  }, connectCommerce(LOCAL_BASE));
});
