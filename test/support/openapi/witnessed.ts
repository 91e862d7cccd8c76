import type { Hex } from "viem";

/**
 * Everything that the test file under way signed and was answered, for the proof that no signature ever comes out.
 * The files of one worker share it one after the other.
 */
export const witnessed: { readonly signatures: Hex[]; readonly answers: string[] } = { signatures: [], answers: [] };

export function forgetWitnessed(): void {
  witnessed.signatures.length = 0;
  witnessed.answers.length = 0;
}
