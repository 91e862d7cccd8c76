import type { RevertReason } from "../revert-reason.ts";

/** The error codes of the scheme "auth-capture" on EVM chains, without their common prefix. */
export type RefusalCode =
  | "payload_format"
  | "scheme"
  | "network_mismatch"
  | "extra"
  | "payload_method_mismatch"
  | "deadline_ordering"
  | "authorization_expired"
  | "authorization_not_yet_valid"
  | "token_collector_mismatch"
  | "amount_mismatch"
  | "nonce_mismatch"
  | "signature"
  | "erc6492_factory_not_allowed"
  | "simulation_failed"
  | "insufficient_balance"
  | "payment_already_collected";

/** Returns the reason for a refusal: the scheme's code, then the fault and the expected value. */
export const refusal = (code: RefusalCode, why: string): string => `invalid_auth_capture_evm_${code}: ${why}`;

/** Returns the code for the error that a simulated hold reverted with. */
export function revertCode({ name, text }: RevertReason): RefusalCode {
  if (/transfer amount exceeds balance/.test(text)) return "insufficient_balance";
  switch (name) {
    case "PaymentAlreadyCollected":
      return "payment_already_collected";
    case "AfterPreApprovalExpiry":
      return "authorization_expired";
    case "InvalidExpiries":
      return "deadline_ordering";
    default:
      return "simulation_failed";
  }
}
