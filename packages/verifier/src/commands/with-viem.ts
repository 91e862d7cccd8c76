import { InputError } from "../refusal.ts";

/**
 * Work that hashes typed data and recovers signers, which viem does; who only checks signed documents need not install
 * it.
 * @throws InputError without viem
 */
export async function withViem<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new InputError("This check requires the viem package: npm install viem.");
  }
}
