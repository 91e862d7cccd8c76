import { asReading } from "../platform/chain/nodes.ts";
import { sleep } from "../platform/clock.ts";

/** A payment is refused for a state of the chain only if this many readings in a row show it. */
const READINGS = 3;
const BETWEEN_READINGS_MS = 250;

/**
 * Reads the chain until a reading does not refuse the payment, at most `READINGS` times. Each reading uses another node
 * if there are several, because a lagging node may not know a wallet's code, its owner, or its balance yet.
 * @param read receives the number of the reading, counted from 1
 */
export async function readAgain<Seen>(
  read: (reading: number) => Promise<Seen>,
  isRefusal: (seen: Seen) => boolean,
): Promise<Seen> {
  for (let reading = 1; ; reading++) {
    const seen = await asReading(reading - 1, () => read(reading));
    if (!isRefusal(seen) || reading === READINGS) return seen;
    await sleep(BETWEEN_READINGS_MS);
  }
}
