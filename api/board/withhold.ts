/** A figure that covers fewer wallets than this is not published as part of a whole. */
export const MINIMUM_WALLETS = 5;

/** How many certificates there are, and from how many distinct wallets. */
export interface Count {
  readonly certificates: number;
  readonly wallets: number;
}

export const NONE: Count = { certificates: 0, wallets: 0 };

/** Covers no wallet, or enough of them. */
export const isPublic = ({ wallets }: Count): boolean => wallets === 0 || wallets >= MINIMUM_WALLETS;

/**
 * Which parts of a published total to withhold. If a part covers too few wallets, it is withheld together with all
 * parts that are zero and, if that still leaves it alone, with the smallest of the others. At least two parts are then
 * withheld, and any of them may be zero, so the total minus the published parts reveals none of them.
 * @param beside what the total counts besides these parts, and which is not published itself
 */
export function withhold(parts: readonly Count[], beside: Count = NONE): readonly boolean[] {
  if ([...parts, beside].every(isPublic)) return parts.map(() => false);
  const hidden = parts.map((part) => part.wallets < MINIMUM_WALLETS);
  const others = parts
    .map(({ wallets }, index) => ({ wallets, index }))
    .filter(({ index }) => hidden[index] === false)
    .toSorted((a, b) => a.wallets - b.wallets);
  const more = others.slice(0, Math.max(0, 2 - hidden.filter(Boolean).length));
  return hidden.map((one, index) => one || more.some((other) => other.index === index));
}
