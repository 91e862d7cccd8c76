import { BaseError, ContractFunctionRevertedError } from "viem";

const MAX_REASON_LENGTH = 300;

/**
 * viem's errors print calldata, which holds payers' signatures, and the node's URL, which may hold a key. Neither
 * belongs in a log.
 */
export const withoutSecrets = (error: unknown): unknown =>
  error instanceof BaseError
    ? new Error(
        `${error.name}: ${error.shortMessage} ${error.details}`
          .replace(/[0-9a-f]{64,}/gi, "…")
          .slice(0, MAX_REASON_LENGTH),
      )
    : error;

/** Runs the work, replacing its errors with ones that are safe to log. */
export const discreet =
  <Arguments extends readonly unknown[], T>(work: (...given: Arguments) => Promise<T>) =>
  (...given: Arguments): Promise<T> =>
    work(...given).catch((error: unknown) => {
      throw withoutSecrets(error);
    });

/** Why a contract reverted, in its own words if it gave any. */
export const revertReason = (error: unknown): string => {
  const reverted = error instanceof BaseError ? error.walk((e) => e instanceof ContractFunctionRevertedError) : null;
  return reverted instanceof ContractFunctionRevertedError
    ? (reverted.reason ?? "it reverted without a reason")
    : "it reverted";
};

/** True if a call used up all of its gas. Nodes say so in words. */
export const isOutOfGas = (error: unknown): boolean =>
  error instanceof BaseError && /out of gas|OutOfGas|gas required exceeds|intrinsic gas/i.test(error.message);

const UNREADABLE_ANSWERS = new Set([
  "AbiDecodingDataSizeTooSmallError",
  "AbiDecodingZeroDataError",
  "ContractFunctionZeroDataError",
]);

/** True if the node failed to answer, rather than the contract refusing. */
export const isTransport = (error: unknown): boolean =>
  !(
    error instanceof BaseError &&
    error.walk(
      (e) => e instanceof ContractFunctionRevertedError || (e instanceof BaseError && UNREADABLE_ANSWERS.has(e.name)),
    ) !== null
  );
