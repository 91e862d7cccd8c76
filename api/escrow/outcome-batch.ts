import {
  decodeFunctionResult,
  type PublicClient,
  parseAbi,
  stringToHex,
  type TransactionReceipt,
  toEventSelector,
} from "viem";
import { escrowEventsAbi } from "../../contracts/abi.ts";
import { keccak256 } from "../platform/chain/keccak.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import { aggregateData } from "./calldata.ts";
import { MULTICALL3 } from "../platform/chain/multicall.ts";
import type { Call } from "../platform/relayer/form.ts";

/** A call without its sender, who may be anybody. */
export interface Carriable {
  readonly to: Address;
  readonly data: Hex;
  /** The most gas that it uses. It calls no stranger's code, so nobody can make it use more. */
  readonly gas: bigint;
}

/** What a transaction of outcomes may use besides, and around each call with the gas that cannot be handed on. */
const GAS = { transaction: 60_000n, call: 10_000n };
const AGGREGATE = parseAbi([
  "struct Call3 { address target; bool allowFailure; bytes callData; }",
  "struct Result { bool success; bytes returnData; }",
  "function aggregate3(Call3[] calls) payable returns (Result[] returnData)",
]);

const DECISIONS = { release: stringToHex("release"), refund: stringToHex("refund") } as const;
const selectorOf = (name: string): Hex => {
  const event = escrowEventsAbi.find((one) => one.name === name);
  if (event === undefined) throw new Error(`the escrow has no event ${name}`);
  return toEventSelector(event);
};
/** The payment's id is the first indexed member of both. */
const ENDED = new Map<string | undefined, "release" | "refund">([
  [selectorOf("Released"), "release"],
  [selectorOf("Refunded"), "refund"],
]);

/** What the first transaction for an outcome is for, the only one that it may share. */
export const outcomePurpose = (payment: Hex, decision: "release" | "refund"): Hex =>
  keccak256(`${payment}${DECISIONS[decision].slice(2)}`);

/** One transaction for all of these calls, each of which may fail without the others. */
export const outcomeBatch = (calls: readonly Carriable[]): Call => ({
  to: MULTICALL3,
  data: aggregateData(calls),
  gas: calls.reduce((sum, { gas }) => sum + GAS.call + (gas * 64n) / 63n, GAS.transaction),
});

/** Which of the calls would succeed at the head, in their order, sent as they will be. */
export async function succeedingIn(
  client: PublicClient,
  sender: Address,
  calls: readonly Carriable[],
): Promise<readonly boolean[]> {
  const { data } = await client.call({ account: sender, ...outcomeBatch(calls) });
  const results = decodeFunctionResult({ abi: AGGREGATE, functionName: "aggregate3", data: data ?? "0x" });
  return results.map(({ success }) => success);
}

/**
 * The purposes that a mined transaction of outcomes has served, by its events; null for any other transaction. Our
 * relayers send nothing but outcomes to Multicall3.
 */
export function servedBy({ to, logs }: Pick<TransactionReceipt, "to" | "logs">): readonly Hex[] | null {
  if (to?.toLowerCase() !== MULTICALL3) return null;
  return logs.flatMap(({ topics: [event, payment] }) => {
    const decision = ENDED.get(event);
    return decision === undefined || payment === undefined ? [] : [outcomePurpose(payment, decision)];
  });
}
