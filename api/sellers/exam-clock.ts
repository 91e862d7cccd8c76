import { ExaminersFault } from "../../packages/seller-check/src/exam/examiners-fault.ts";
import type { Ledger } from "../../packages/seller-check/src/exam/ledger.ts";

/** With a clock this far ahead, what is signed would not be valid yet, and a correct seller would refuse it. */
const MOST_AHEAD_MS = 300_000;

/**
 * The clock by which a run judges, in milliseconds since 1970: ours, or the chain's if ours is behind. Blocks are compared
 * with it, and a clock that is behind would take old ones for new.
 * @throws ExaminersFault if our clock is far ahead, or the chain stands still
 */
export async function examClock({ now }: Pick<Ledger, "now">, own: () => Date): Promise<() => number> {
  const chain = await ours(now());
  const behind = chain * 1000 - own().getTime();
  if (behind < -MOST_AHEAD_MS)
    throw new ExaminersFault(`The newest block is ${Math.round(-behind / 1000)} seconds behind our clock.`);
  return () => own().getTime() + Math.max(0, behind);
}

/** @throws ExaminersFault if the chain cannot be read */
export const ours = <T>(reading: Promise<T>): Promise<T> =>
  reading.catch((cause: unknown) => {
    throw new ExaminersFault("The chain cannot be read.", { cause });
  });
