import { BaseError, ContractFunctionRevertedError, ExecutionRevertedError } from "viem";

/** What a contract said when it refused a call. */
export interface RevertReason {
  /** The name of the custom error, its selector if it is unknown here; "Error" for a text, or for nothing. */
  readonly name: string;
  readonly text: string;
}

/** Why a contract refused; null if it did not refuse but the node failed, so that nothing is known. */
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

/** Whether a call was refused or ran out of gas, as opposed to a failure of the node. */
export const hasReverted = (error: unknown): boolean =>
  error instanceof BaseError &&
  error.walk((cause) => cause instanceof ExecutionRevertedError || isOutOfGas(cause)) !== null;

/** Nodes have no code of their own for it. */
const isOutOfGas = (cause: unknown): boolean => cause instanceof BaseError && /out ?of ?gas/i.test(cause.details);
