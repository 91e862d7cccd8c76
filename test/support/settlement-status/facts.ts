import type { HashedBlock } from "../../../api/platform/chain/nodes.ts";
import type { FactsKept, FinalFacts, NonceEnd } from "../../../api/settlement-status/reading.ts";

/** What processes share, as the database keeps it. */
export function factsInMemory(): FinalFacts {
  let end: NonceEnd | null = null;
  const unused = new Map<bigint, HashedBlock>();
  return {
    get: async (_, validBefore): Promise<FactsKept> => ({
      end,
      unusedBefore: validBefore === null ? null : (unused.get(validBefore) ?? null),
    }),
    async putEnd(_, found) {
      end ??= found;
    },
    async putUnused(_, validBefore, block) {
      const kept = unused.get(validBefore) ?? block;
      unused.set(validBefore, kept);
      return kept;
    },
  };
}

/** Nothing is ever kept: each process finds out by itself. */
export const NO_FACTS: FinalFacts = {
  get: async () => ({ end: null, unusedBefore: null }),
  putEnd: async () => {},
  putUnused: async (_name, _validBefore, block) => block,
};
