import hre from "hardhat";
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseEventLogs,
  toHex,
} from "viem";
import { expect, test } from "vitest";
import type { SignedHold } from "../../api/payments/schemes/escrowed.ts";
import { authorizeData, HOLD_GAS, holdsOf } from "../../api/payments/settle/holds.ts";
import { escrowAbi } from "../../contracts/abi.ts";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../contracts/settlement-batch.ts";
import { putBehindProxy } from "../support/chain/contracts.ts";
import { COMMERCE_ENVIRONMENTS, connectCommerce, type UsdcChain } from "../support/chain/usdc-chain.ts";
import { deployEscrow, deployOperator, type EscrowChain, newPayer } from "./escrow-chain.ts";

// Measures holds of ordinary accounts with Circle's USDC behind its proxy. The gas caps must have room for the most
// expensive one.

const HOLD = { abi: settlementBatchAbi, functionName: "hold" } as const;
const HUNDRED_USD = 100_000_000n;

async function inChain<T>(use: (chain: UsdcChain) => Promise<T>): Promise<T> {
  const environment = COMMERCE_ENVIRONMENTS.find(
    ({ skipped, hardhatNetwork }) => skipped === null && hardhatNetwork === "simulatedBase",
  );
  if (environment === undefined) throw new Error("There is no local chain to measure on.");
  const chain = await connectCommerce(environment);
  try {
    await putBehindProxy(chain);
    const { deployedBytecode } = await hre.artifacts.readArtifact("SettlementBatch");
    await chain.client.setCode({ address: SETTLEMENT_BATCH.address, bytecode: deployedBytecode as Hex });
    return await use(chain);
  } finally {
    await chain.connection.close();
  }
}

async function signedHold(escrow: EscrowChain, extra: bigint): Promise<SignedHold> {
  const payer = await newPayer(escrow, HUNDRED_USD + extra);
  const salt = BigInt(keccak256(toHex("salt")));
  const receiver = keccak256(payer.address).slice(0, 42) as Address;
  const info = await escrow.terms({ payer: payer.address, receiver, maxAmount: HUNDRED_USD, salt });
  const { address: contract, collector } = escrow;
  return { contract, collector, info, nonce: "0x", signature: await escrow.signPayment(payer, info) };
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
  await inChain(async (chain) => {
    const escrow = await deploy(chain);
    // There was no hold before, so every account involved gets its first USDC.
    const first = await signedHold(escrow, 1n);
    const least = await leastCap(escrow, first);
    expect(least).toBeLessThan((caps.call * 9n) / 10n);
    expect(least).toBeGreaterThan(caps.call / 2n);
    const sharing = holdsOf(first.contract);
    const alone = await sent(escrow, sharing.single(first));
    expect(alone.held).toBe(1);
    expect(alone.gasUsed).toBeLessThan((caps.single * 9n) / 10n);
    const ten: SignedHold[] = [];
    while (ten.length < 10) ten.push(await signedHold(escrow, 1n));
    const together = await sent(escrow, sharing.several(ten));
    expect(together.held).toBe(10);
    expect(together.gasUsed / 10n).toBeLessThan(ceiling);
  });
});
