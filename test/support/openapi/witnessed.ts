import type { Hex } from "viem";

/**
 * Everything the current test file signed and received, to prove that no signature ever leaks. The files of one worker
 * share it one after the other.
 */
export const witnessed: { readonly signatures: Hex[]; readonly answers: string[] } = { signatures: [], answers: [] };

export function forgetWitnessed(): void {
  witnessed.signatures.length = 0;
  witnessed.answers.length = 0;
}
