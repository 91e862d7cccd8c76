import {
  decodeFunctionResult,
  encodeFunctionData,
  getAbiItem,
  multicall3Abi,
  type PublicClient,
  stringToHex,
  type TransactionReceipt,
  toEventSelector,
} from "viem";
import { escrowAbi } from "../../contracts/abi.ts";
import type { PaymentInfo } from "../../packages/escrow/src/payment-info.ts";
import { MULTICALL3 } from "../platform/chain/read-at-block.ts";
import { keccak256 } from "../platform/chain/typed-data.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Call } from "../platform/relayer/form.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Task } from "./store.ts";

/** The call that ends a held payment. */
export interface Ending {
  readonly decision: "release" | "refund";
  readonly info: PaymentInfo;
  readonly record: Hex;
  readonly verdict: Hex;
}

/** Returns the data of the call that releases or refunds a payment. */
export const endingData = ({ decision, info, record, verdict }: Ending): Hex =>
  encodeFunctionData({ abi: escrowAbi, functionName: decision, args: [info, record, verdict] });

/** Returns the data of Multicall3's call for several calls, each of which may fail without affecting the others. */
const aggregateData = (calls: readonly { readonly to: Address; readonly data: Hex }[]): Hex => {
  const each = calls.map(({ to: target, data: callData }) => ({ target, allowFailure: true, callData }));
  return encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [each] });
};

/**
 * Returns the typed data that the arbiter signs, so that anyone can carry its verdict: EIP-712, as in
 * `contracts/Escrow.sol`.
 */
export const verdictTypedData = (
  { network, contract, payment, decision }: Pick<Task, "network" | "contract" | "payment" | "decision">,
  record: Hex,
) => ({
  domain: {
    name: "Agent Payment Trust Escrow",
    version: "1",
    chainId: NETWORKS[network].chainId,
    verifyingContract: contract,
  },
  types: {
    Verdict: [
      { name: "paymentId", type: "bytes32" },
      { name: "release", type: "bool" },
      { name: "record", type: "bytes32" },
    ],
  },
  primaryType: "Verdict" as const,
  message: { paymentId: payment, release: decision === "release", record },
});

/** A call without its sender, who can be anyone. */
export interface Carriable {
  readonly to: Address;
  readonly data: Hex;
  /** The most gas that it uses. It calls no other party's code, so its gas use cannot be driven up. */
  readonly gas: bigint;
}

/** The extra gas of a transaction of outcomes, and of each call, including the gas that cannot be forwarded. */
const GAS = { transaction: 60_000n, call: 10_000n };
const DECISIONS = { release: stringToHex("release"), refund: stringToHex("refund") } as const;
/** The payment's ID is the first indexed member of both. */
const ENDED = new Map<string | undefined, "release" | "refund">([
  [toEventSelector(getAbiItem({ abi: escrowAbi, name: "Released" })), "release"],
  [toEventSelector(getAbiItem({ abi: escrowAbi, name: "Refunded" })), "refund"],
]);

/** Returns the purpose of the first transaction for an outcome, the only one that it may share with others. */
export const outcomePurpose = (payment: Hex, decision: "release" | "refund"): Hex =>
  keccak256(`${payment}${DECISIONS[decision].slice(2)}`);

/** Returns one transaction for all of these calls, each of which may fail without affecting the others. */
export const outcomeBatch = (calls: readonly Carriable[]): Call => ({
  to: MULTICALL3,
  data: aggregateData(calls),
  gas: calls.reduce((sum, { gas }) => sum + GAS.call + (gas * 64n) / 63n, GAS.transaction),
});

/** Returns which of the calls would succeed at the head, in their order, if sent as one transaction. */
export async function succeedingIn(
  client: PublicClient,
  sender: Address,
  calls: readonly Carriable[],
): Promise<readonly boolean[]> {
  const { data } = await client.call({ account: sender, ...outcomeBatch(calls) });
  const results = decodeFunctionResult({ abi: multicall3Abi, functionName: "aggregate3", data: data ?? "0x" });
  return results.map(({ success }) => success);
}

/**
 * Returns the purposes that a mined transaction of outcomes has served, according to its events, or null for any other
 * transaction. Our relayers send only outcomes to Multicall3.
 */
export function servedBy({ to, logs }: Pick<TransactionReceipt, "to" | "logs">): readonly Hex[] | null {
  if (to?.toLowerCase() !== MULTICALL3) return null;
  return logs.flatMap(({ topics: [event, payment] }) => {
    const decision = ENDED.get(event);
    return decision === undefined || payment === undefined ? [] : [outcomePurpose(payment, decision)];
  });
}
