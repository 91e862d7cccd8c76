/** A figure about what fewer wallets did is not published as part of a whole. */
export const MINIMUM_WALLETS = 5;

/** How many certificates there are, and of how many different wallets. */
export interface Count {
  readonly certificates: number;
  readonly wallets: number;
}

export const NONE: Count = { certificates: 0, wallets: 0 };

/** About nobody, or about enough wallets. */
export const isPublic = ({ wallets }: Count): boolean => wallets === 0 || wallets >= MINIMUM_WALLETS;

/**
 * Which parts of a published total are withheld. Where one part is about too few wallets, it is withheld together with the
 * parts that are zero and, if that is not another one, with the smallest of the others: at least two are withheld then, and any of
 * them may be zero, so what is left of the total after the shown ones does not tell any of them.
 * @param beside what the total counts besides these parts, and is not shown itself
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
