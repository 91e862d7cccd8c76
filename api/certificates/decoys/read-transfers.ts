import type { DecoyOf, DecoyStore, FinalHead, UsdcTransfers } from "./decoy-store.ts";
import { entriesOf, NOBODY, WATCHED_DAYS } from "./refund.ts";

/** Blocks read at a time, and how often in one pass. */
const SPAN = 9_000;
const SPANS_A_PASS = 50;
/** Blocks read again in every pass, an hour of them: a node may have lacked a log, or served one too late. */
const OVERLAP = 1_800;
const DAY_MS = 86_400_000;

export interface ReadParts {
  readonly decoys: DecoyStore;
  readonly usdc: UsdcTransfers;
  readonly now: () => Date;
  readonly log: { error(facts: object, message: string): void };
}

/** Brings the books of all decoys up to a final block; false if there is more to read than fits one pass. */
export async function readTransfers(parts: ReadParts, next: number, final: FinalHead): Promise<boolean> {
  const { decoys, usdc, now } = parts;
  // An address is shown to nobody before its session is stored, so whatever a block known by now holds was sent to one of these.
  const watched = await decoys.watched(new Date(now().getTime() - WATCHED_DAYS * DAY_MS));
  const addresses = watched.map(({ address }) => address);
  let position = next;
  let from = firstBlock(next, watched, final);
  for (let span = 0; from <= final.number; span++) {
    if (span === SPANS_A_PASS) return false;
    const to = Math.min(from + SPAN - 1, final.number);
    const entries = entriesOf(addresses.length === 0 ? [] : await usdc.transfersOf(addresses, { from, to }), watched);
    const moved = Math.max(position, to + 1);
    const added = await decoys.record(entries, { from: position, to: moved, now: now() });
    if (added === null) return false;
    for (const { other, decoy, value, transaction } of added.filter((entry) => entry.other === NOBODY))
      parts.log.error({ decoy, from: other, value: String(value), transaction }, MINTED);
    position = moved;
    from = to + 1;
  }
  return true;
}

const MINTED = "USDC was minted to a decoy address, so nobody is known to return it to";

/** Where to read from: a little before the position, and not before any of these addresses was known. */
function firstBlock(next: number, watched: readonly DecoyOf[], final: FinalHead): number {
  const known = watched.flatMap(({ fromBlock }) => fromBlock ?? []);
  const first = known.reduce((least, block) => Math.min(least, block), final.number);
  return Math.max(Math.max(next, first) - OVERLAP, 0);
}
