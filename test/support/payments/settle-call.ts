import { type Address, concat, encodeFunctionData, encodePacked, type Hex, hexToBigInt, parseSignature } from "viem";
import { settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import type { Signed } from "./signing.ts";

/** One item of a settlement batch, from the layout that `ISettlementBatch` publishes. */
function itemOf({ authorization, signature }: Signed): Hex {
  const { from, value, validAfter, validBefore, nonce } = authorization;
  const { r, s, yParity } = parseSignature(signature);
  const vs = hexToBigInt(s) | (BigInt(yParity) << 255n);
  return encodePacked(
    ["address", "uint64", "uint40", "uint40", "bytes32", "bytes32", "uint256"],
    [from, value, Number(validAfter), Number(validBefore), nonce, r, vs],
  );
}

/** The calldata that settles the authorizations, all to one payee, with at most `gasCap` gas for each. */
export const settleCall = (
  payments: readonly Signed[],
  { token, to, gasCap }: { readonly token: Address; readonly to: Address; readonly gasCap: bigint },
): Hex =>
  encodeFunctionData({
    abi: settlementBatchAbi,
    functionName: "settle",
    args: [token, to, gasCap, concat(payments.map(itemOf))],
  });
