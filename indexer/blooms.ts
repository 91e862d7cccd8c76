import { registerHooks } from "node:module";

const ASKED_BY = "/node_modules/ponder/dist/esm/sync-realtime/bloom.js";
const HASHES = new URL("bloom-hashes.ts", import.meta.url).href;

/** Where an import of this name leads in place of viem, if anywhere. */
export const hashesFor = (specifier: string, from: string): string | null =>
  specifier === "viem" && from.endsWith(ASKED_BY) ? HASHES : null;

/**
 * From now on Ponder remembers the hashes by which it looks things up in a block's bloom filter. It looks up contract and topics
 * of every log of a block, also of those that it does not follow: without this, hashing each with viem, and reading the filter's
 * hex each time, is a sixth of its processor time at the head of the chain.
 */
export function rememberHashes(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const url = hashesFor(specifier, context.parentURL ?? "");
      return url === null ? next(specifier, context) : { url, shortCircuit: true };
    },
  });
}
