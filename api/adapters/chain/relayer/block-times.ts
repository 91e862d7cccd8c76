/** So many of the last blocks are remembered, and so few say nothing of the next. */
const SIGHTINGS = { most: 6, least: 4 };
/** How far a block may come from its time, in shares of the time between two. */
const JITTER = 1 / 16;
/** Blocks that come more often come when there is something to put in. */
const SHORTEST_GAP_MS = 100;
/** After so many blocks that nobody saw, nobody knows when the next one comes. */
const KNOWN_FOR = 10;

/** A block came after `from` and no later than `to`, in milliseconds. */
interface Sighting {
  readonly number: number;
  readonly from: number;
  readonly to: number;
}

/** Predicts blocks that come at regular times. */
export interface BlockTimes {
  /** The block was not there yet when the chain was asked at `from`, and was there at `to`. */
  saw(number: number, from: number, to: number): void;
  /** When the first block after `now` is due, and the time between two; null if those seen last were not regular. */
  next(now: number): { readonly at: number; readonly gapMs: number } | null;
}

/**
 * Of each block it is known between which two looks at the chain it came. Blocks are regular if one time between two
 * blocks agrees with all that were seen last.
 */
export function createBlockTimes(): BlockTimes {
  const sightings: Sighting[] = [];
  let known: { readonly last: Sighting; readonly gapMs: number } | null = null;
  return {
    saw(number, from, to) {
      sightings.push({ number, from, to });
      if (sightings.length > SIGHTINGS.most) sightings.shift();
      known = sightings.length < SIGHTINGS.least ? null : fitted(sightings);
    },
    next(now) {
      if (known === null) return null;
      const { last, gapMs } = known;
      const came = (last.from + last.to) / 2;
      const blocks = Math.max(1, Math.ceil((now - came) / gapMs));
      return blocks > KNOWN_FOR ? null : { at: came + blocks * gapMs, gapMs };
    },
  };
}

/** The time between two blocks, and when the last one came at that pace; null if there is no such pace. */
function fitted(sightings: readonly Sighting[]): { readonly last: Sighting; readonly gapMs: number } | null {
  const [first, last] = [sightings[0], sightings.at(-1)] as readonly [Sighting, Sighting];
  const rough = (last.from + last.to - first.from - first.to) / 2 / (last.number - first.number);
  if (!(rough >= SHORTEST_GAP_MS)) return null;
  const slack = rough * JITTER;
  const gaps = { least: 0, most: Number.POSITIVE_INFINITY };
  for (const [place, later] of sightings.entries())
    for (const earlier of sightings.slice(0, place)) {
      const blocks = later.number - earlier.number;
      gaps.least = Math.max(gaps.least, (later.from - earlier.to - slack) / blocks);
      gaps.most = Math.min(gaps.most, (later.to - earlier.from + slack) / blocks);
    }
  if (gaps.least > gaps.most) return null;
  const gapMs = (gaps.least + gaps.most) / 2;
  const moved = sightings.map(({ number, from, to }) => {
    const since = (last.number - number) * gapMs;
    return { from: from + since, to: to + since };
  });
  const [from, to] = [Math.max(...moved.map((one) => one.from)), Math.min(...moved.map((one) => one.to))];
  return { last: { number: last.number, from, to }, gapMs };
}
