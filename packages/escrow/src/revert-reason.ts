import { BaseError, ContractFunctionRevertedError } from "viem";

/** What a contract said when it refused a call. */
export interface RevertReason {
  /** The name of the custom error; "Error" if it was text. */
  readonly name: string;
  readonly text: string;
}

/** Why a contract refused; null if it did not refuse but the node failed, so that nothing is known. */
export function revertReason(error: unknown): RevertReason | null {
  const found =
    error instanceof BaseError ? error.walk((cause) => cause instanceof ContractFunctionRevertedError) : null;
  // Without data this may be the node's own failure, which viem reports in the same class.
  if (!(found instanceof ContractFunctionRevertedError) || found.data === undefined) return null;
  const { errorName: name, args } = found.data;
  return { name, text: found.reason ?? `${name}(${(args ?? []).map(String).join(", ")})` };
}
