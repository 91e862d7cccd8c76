import { InputError } from "../refusal.ts";

/**
 * Runs work that needs viem: hashing typed data and recovering signers. Checking signed documents does not need it.
 * @throws InputError if viem is not installed
 */
export async function withViem<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new InputError("This check requires the viem package: npm install viem.");
  }
}
