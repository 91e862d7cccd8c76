import { BaseError, ContractFunctionRevertedError, ExecutionRevertedError } from "viem";

/** A contract's reason for reverting a call. */
export interface RevertReason {
  /** The name of the custom error, or its selector if it is unknown here; "Error" for a text, or for no reason. */
  readonly name: string;
  readonly text: string;
}

/** Returns a contract's reason for refusing; null if the node failed, so that the outcome is unknown. */
export function revertReason(error: unknown): RevertReason | null {
  if (!(error instanceof BaseError)) return null;
  const found = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
  // Without data this may be the node's own failure, which viem reports in the same class.
  if (found instanceof ContractFunctionRevertedError && found.data !== undefined) {
    const { errorName: name, args } = found.data;
    return { name, text: found.reason ?? `${name}(${(args ?? []).map(String).join(", ")})` };
  }
  if (found instanceof ContractFunctionRevertedError && found.signature !== undefined)
    return { name: found.signature, text: `error ${found.signature}` };
  return hasReverted(error) ? { name: "Error", text: "it reverts without a reason, or takes too much gas" } : null;
}

/** Returns whether a call reverted or ran out of gas, as opposed to a failure of the node. */
export const hasReverted = (error: unknown): boolean =>
  error instanceof BaseError &&
  error.walk((cause) => cause instanceof ExecutionRevertedError || isOutOfGas(cause)) !== null;

/** Nodes have no code for running out of gas. */
const isOutOfGas = (cause: unknown): boolean => cause instanceof BaseError && /out ?of ?gas/i.test(cause.details);
