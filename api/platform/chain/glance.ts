import type { Address } from "../wallet.ts";
import type { Expected, Head } from "../../payments/scheme.ts";
import type { View } from "../../payments/step-types.ts";
import { settlementFilter } from "./authorization-logs.ts";
import { smaller } from "./block-range.ts";
import { settlementIn } from "./find-settlement.ts";
import type { LogReader } from "./logs.ts";
import { together } from "./together.ts";

const LOOKS = { most: 100, underWay: 2, waitMs: 5 };
/** A node may run a little behind the head that was noted on arrival. */
const OVERLAP = 8;
/** The most blocks that a glance covers: a payment that was just submitted is in one of the newest. */
const NEWEST = 300n;

/**
 * One call for the logs of all payments that are looked at together: those that were just submitted. Shows what has paid;
 * null says nothing, and the payment is looked at by itself.
 */
export function createGlance(logs: LogReader, usdc: Address) {
  const look = async (payments: readonly Expected[]): Promise<readonly (View | null)[]> => {
    const from = Math.max(0, Math.min(...payments.map(({ fromBlock }) => fromBlock)) - OVERLAP);
    const found = await logs.newest(settlementFilter(usdc, payments), BigInt(from));
    return payments.map((expected) => settlementIn(found, expected));
  };
  const seen = together(look, LOOKS);
  return async (expected: Expected, { number }: Head): Promise<View | null> =>
    BigInt(number - expected.fromBlock + OVERLAP) >= smaller(NEWEST, logs.width())
      ? null
      : seen(expected).catch(() => null);
}
