import type { AccountKey } from "../chain/remote-signer.ts";
import { accountKeyOf, type GivenKeys } from "./account-keys.ts";
import { accountKey, addressOf, whole } from "./values.ts";

export const EXAM_VARIABLES = {
  EXAM_PRIVATE_KEY: accountKey("the private key that pays in exams of sellers").optional(),
  EXAM_ADDRESS: addressOf("the account that pays in exams of sellers").optional(),
  EXAM_DAILY_SPEND: whole(0, 1_000_000_000_000).default(50_000_000),
};

/** The account that pays in exams of sellers, and its limit per 24 hours, in atomic USDC. */
export interface ExamSettings {
  readonly key: AccountKey;
  readonly daily: bigint;
}

/** Returns null if no exams are sold. */
export function examSettings(given: Given): ExamSettings | null {
  const key = accountKeyOf("EXAM", given);
  return key === null ? null : { key, daily: BigInt(given.EXAM_DAILY_SPEND) };
}

export interface Given extends GivenKeys {
  readonly EXAM_DAILY_SPEND: number;
}
