import type { Hex } from "../wallet.ts";
import { accountKey, whole } from "./values.ts";

export const EXAM_VARIABLES = {
  EXAM_PRIVATE_KEY: accountKey("the private key that pays in exams of sellers").optional(),
  EXAM_DAILY_SPEND: whole(0, 1_000_000_000_000).default(50_000_000),
};

/** What pays in exams of sellers, and how much of it in 24 hours, in atomic USDC. */
export interface ExamSettings {
  readonly privateKey: Hex;
  readonly daily: bigint;
}

/** Null where no exams are sold. */
export const examSettings = ({ EXAM_PRIVATE_KEY: key, EXAM_DAILY_SPEND: daily }: Given): ExamSettings | null =>
  key === undefined ? null : { privateKey: key as Hex, daily: BigInt(daily) };

export interface Given {
  readonly EXAM_PRIVATE_KEY?: string | undefined;
  readonly EXAM_DAILY_SPEND: number;
}
