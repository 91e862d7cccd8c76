import { z } from "zod";
import { wallet } from "../platform/http/schema.ts";

/** SPEC.md, paid routes. Atomic USDC. */
export const SCORE_PRICES = { one: 100_000n, batch: 500_000n } as const;

/** The most wallets one payment can score (SPEC.md, limits). */
export const MAX_WALLETS = 25;

export const SCORE_REQUEST = z.object({ wallet });

/**
 * The body of `POST /score/batch`. Malformed wallets are reported by their index (400). An empty list, too many
 * wallets, and duplicates are refused (422).
 */
export const BATCH_REQUEST = z.object({
  wallets: z.array(wallet).superRefine((wallets, issues) => {
    const refuse = (path: number[], message: string) => issues.addIssue({ code: "custom", path, message });
    if (wallets.length === 0) refuse([], `expected 1 to ${MAX_WALLETS} wallets`);
    if (wallets.length > MAX_WALLETS) refuse([], `expected at most ${MAX_WALLETS} wallets, got ${wallets.length}`);
    for (const [place, one] of wallets.entries()) {
      const first = wallets.indexOf(one);
      if (first < place) refuse([place], `repeats the wallet at index ${first}`);
    }
  }),
});

export const EXAMPLE_WALLETS = ["0x70997970c51812dc3a010c7d01b50e0d17dc79c8"] as const;

/** The members of a score record that callers read first. */
export const exampleRecord = {
  wallet: EXAMPLE_WALLETS[0],
  score: 61,
  tier: "C",
  score_version: 1,
  as_of: "2026-11-25T09:30:00.000Z",
  as_of_block: 38_500_000,
  flags: [],
};
