import {
  decodeFunctionResult,
  encodeFunctionData,
  keccak256,
  type PublicClient,
  parseEventLogs,
  type TransactionReceipt,
} from "viem";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import { hasLowS } from "../../../packages/escrow/src/signature-forms.ts";
import { isBatch } from "../../platform/chain/authorizations.ts";
import type { Authorization } from "../../platform/chain/view.ts";
import type { SendingTerms } from "../../platform/relayer/fees.ts";
import type { Call } from "../../platform/relayer/form.ts";
import type { Address, Hex } from "../../platform/wallet.ts";

/**
 * The gas limit of one payment's call in a batch. An ordinary account needs at most 80,019
 * (docs/decisions/settlement-batch.md).
 */
const CALL_GAS = 100_000n;
/** The overhead of a batch, and the gas of each call with the part that cannot be passed on and the loop around it. */
const GAS = { batch: 60_000n, call: 106_000n };

export interface SignedTransfer {
  readonly authorization: Authorization;
  readonly signature: Hex;
}

/** Returns the gas limit of a batch of `count` payments. */
const batchGas = (count: number): bigint => GAS.batch + GAS.call * BigInt(count);

/** Whether a signature has the canonical form of an account: r, the lower s, and 27 or 28. */
export const isCanonical = (signature: Hex): boolean => /^0x[0-9a-f]{128}1[bc]$/i.test(signature) && hasLowS(signature);

/**
 * Whether a payment fits into the 134 bytes of a batch entry. It needs an account's canonical signature, and an amount
 * and times within the packed ranges.
 */
export function isPackable({ authorization, signature }: SignedTransfer): boolean {
  const { value, validAfter, validBefore } = authorization;
  return isCanonical(signature) && value < 1n << 64n && validAfter < 1n << 40n && validBefore < 1n << 40n;
}

const fixed = (value: bigint, bytes: number): string => value.toString(16).padStart(bytes * 2, "0");

/**
 * `from` 20 bytes, `value` 8, `validAfter` 5, `validBefore` 5, `nonce` 32, `r` 32, `s` 32 with `v - 27` as its highest
 * bit.
 */
function packed({ authorization, signature }: SignedTransfer): string {
  const { from, value, validAfter, validBefore, nonce } = authorization;
  const odd = signature.slice(130).toLowerCase() === "1c" ? 1n << 255n : 0n;
  const s = BigInt(`0x${signature.slice(66, 130)}`) | odd;
  return [
    from.slice(2),
    fixed(value, 8),
    fixed(validAfter, 5),
    fixed(validBefore, 5),
    nonce.slice(2),
    signature.slice(2, 66),
    fixed(s, 32),
  ].join("");
}

export interface BatchTerms {
  readonly usdc: Address;
  readonly payTo: Address;
}

/** Returns the call that settles payable transfers to one payee, in their order. */
export const batchCall = ({ usdc, payTo }: BatchTerms, transfers: readonly SignedTransfer[]) => ({
  to: SETTLEMENT_BATCH.address,
  data: encodeFunctionData({
    abi: settlementBatchAbi,
    functionName: "settle",
    args: [usdc, payTo, CALL_GAS, `0x${transfers.map(packed).join("")}`],
  }),
  gas: batchGas(transfers.length),
});

/**
 * Returns which of the `count` payments of a batch would settle at the head, sent exactly as simulated. Only a
 * simulation of one payment alone explains why it would not.
 */
export async function settlingIn(
  client: PublicClient,
  batch: Call & SendingTerms,
  count: number,
): Promise<readonly boolean[]> {
  const { data } = await client.call(batch);
  const [failed] = decodeFunctionResult({ abi: settlementBatchAbi, functionName: "settle", data: data ?? "0x" });
  return Array.from({ length: count }, (_, place) => !has(failed, place));
}

const has = (mask: bigint, place: number): boolean => ((mask >> BigInt(place)) & 1n) === 1n;

/**
 * Returns the positions, counted from 1, of the calls that failed in a mined transaction. Empty if it is not a batch.
 */
export function failedPlaces({ to, logs }: Pick<TransactionReceipt, "to" | "logs">): readonly number[] {
  if (!isBatch(to)) return [];
  const unsettled = parseEventLogs({ abi: settlementBatchAbi, eventName: "Unsettled", logs });
  const failed = unsettled.find(({ address }) => isBatch(address))?.args.failed ?? 0n;
  return Array.from({ length: 256 }, (_, place) => place)
    .filter((place) => has(failed, place))
    .map((place) => place + 1);
}

/** Whether the contract is on the chain with the expected code. */
export async function isDeployed(client: PublicClient): Promise<boolean> {
  const code = await client.getCode({ address: SETTLEMENT_BATCH.address });
  return code !== undefined && keccak256(code) === SETTLEMENT_BATCH.codeHash;
}
