import { type Address, encodeAbiParameters, getAddress, type Hex, keccak256, sha256, stringToBytes, toHex } from "viem";
import { canonical } from "./canonical.ts";
import type { PaymentInfo } from "./payment-info.ts";

/** The longest window in which a buyer may contest, in seconds. */
export const LONGEST_CONTEST_SECONDS = 1200;
/**
 * The time that a release needs before anyone may refund the hold, in seconds: a window closes at least this long
 * before minute 30, so that a contest cannot delay the money further.
 */
export const CONTEST_ROOM_SECONDS = 120;
/** The maximum size of the conditions in canonical JSON, in bytes. They travel in headers. */
export const MAX_CONDITIONS_BYTES = 1024;

/** A merchant's promises about a response; names and rules are the same as in the arbiter's category `http-delivery`. */
export interface AnswerConditions {
  readonly expect_status?: number;
  /** The SHA-256 of the body, as sent or decoded, in hex. */
  readonly expect_sha256?: string;
  /** The minimum length of the decoded body. */
  readonly min_bytes?: number;
  /** Text that the decoded body contains. */
  readonly expect_contains?: string;
}

/** A merchant's promises, by the category of the claim that checks them. */
export interface ContestConditions {
  /** About the response that is sold. */
  readonly expect?: AnswerConditions;
  /** About the content of a public URL after the sale. */
  readonly "http-delivery"?: AnswerConditions & { readonly url: string };
}

/** The conditions that a buyer may contest, and the time to do so. */
export interface ContestTerms {
  /** Counted from the evaluation of the delivery, by the chain's clock: 1 to 1200. */
  readonly seconds: number;
  readonly conditions: ContestConditions;
}

/** With the nonce in the payer's salt: the preimage proves the conditions to anyone. */
export interface BoundContest extends ContestTerms {
  readonly saltNonce: bigint;
}

const A_DAY = 86_400;

/**
 * Returns the distance from a payment's `authorizationExpiry` to its `refundExpiry`, in seconds, if it has a window: a
 * day plus the window. Both are on the chain and signed by the payer, whatever its client, and a seller without windows
 * refuses a payment with more than a day.
 */
export const refundSecondsBeyond = ({ seconds }: Pick<ContestTerms, "seconds">): number => A_DAY + seconds;

/** Returns the window that a payment's terms give its payer, in seconds; 0 for none. */
export function contestSecondsOf({
  authorizationExpiry,
  refundExpiry,
}: Pick<PaymentInfo, "authorizationExpiry" | "refundExpiry">): number {
  const seconds = refundExpiry - authorizationExpiry - A_DAY;
  return seconds >= 1 && seconds <= LONGEST_CONTEST_SECONDS ? seconds : 0;
}

/** Returns the SHA-256 of the conditions in canonical JSON (RFC 8785). */
export const conditionsSha256 = (conditions: object): Hex => sha256(stringToBytes(canonical(conditions)));

const TERMS_TYPEHASH = keccak256(stringToBytes("ContestTerms(uint32 contestSeconds,bytes32 conditionsSha256)"));
/** From x402's scheme "auth-capture": its clients hash this into the salt when an offer has a policy. */
const SALT_TYPEHASH = keccak256(
  stringToBytes("x402AuthCaptureSaltBinding(address receiverAuthorizer,address policy,uint256 saltNonce)"),
);
const NOBODY: Address = "0x0000000000000000000000000000000000000000";

/** Returns the `policy` of an offer: not a contract, but the hash of its contest terms, truncated to an address. */
export function contestPolicy({
  seconds,
  conditions,
}: {
  readonly seconds: number;
  readonly conditions: object;
}): Address {
  const hash = keccak256(
    encodeAbiParameters(
      [{ type: "bytes32" }, { type: "uint32" }, { type: "bytes32" }],
      [TERMS_TYPEHASH, seconds, conditionsSha256(conditions)],
    ),
  );
  return getAddress(`0x${hash.slice(-40)}`);
}

/** Returns the salt of a payment under a policy: clients of x402's "auth-capture" derive it, as does our "commerce". */
export const boundSalt = (policy: Address, saltNonce: bigint, receiverAuthorizer = NOBODY): bigint =>
  BigInt(
    keccak256(
      encodeAbiParameters(
        [{ type: "bytes32" }, { type: "address" }, { type: "address" }, { type: "uint256" }],
        [SALT_TYPEHASH, receiverAuthorizer, policy, saltNonce],
      ),
    ),
  );

/** Whether the payer signed these terms, from which its salt is derived. */
export const isBound = (
  { salt }: Pick<PaymentInfo, "salt">,
  contest: { readonly seconds: number; readonly conditions: object; readonly saltNonce: bigint },
): boolean => salt === boundSalt(contestPolicy(contest), contest.saltNonce);

/** Returns the members about a window in an offer's `extra`; empty without one. */
export const offeredContest = (contest: ContestTerms | undefined) =>
  contest === undefined
    ? {}
    : { policy: contestPolicy(contest), contest: { seconds: contest.seconds, conditions: contest.conditions } };

/** The contest in a forwarded body. */
export const contestOnWire = ({ seconds, conditions, saltNonce }: BoundContest) => ({
  seconds,
  conditions,
  salt_nonce: toHex(saltNonce, { size: 32 }),
});

const CONDITIONS = {
  expect_status: (value: unknown) => Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599,
  expect_sha256: (value: unknown) => typeof value === "string" && /^(0x)?[0-9a-f]{64}$/i.test(value),
  min_bytes: (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0,
  expect_contains: (value: unknown) => typeof value === "string" && value !== "",
} as const;

/**
 * Parses the options `contestSeconds` and `contestConditions`; undefined for no window.
 * @throws TypeError with the fault and the expected value
 */
export function parseContest(seconds = 0, conditions?: ContestConditions): ContestTerms | undefined {
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > LONGEST_CONTEST_SECONDS)
    throw new TypeError(`contestSeconds is ${seconds}, expected a whole number from 0 to ${LONGEST_CONTEST_SECONDS}.`);
  if (seconds === 0) {
    if (conditions === undefined) return undefined;
    throw new TypeError("contestConditions requires contestSeconds: without a window, no buyer could contest.");
  }
  const given: Readonly<Record<string, unknown>> = { ...conditions };
  for (const [category, fields] of Object.entries(given)) parseConditions(category, fields);
  const length = stringToBytes(canonical(given)).length;
  if (length > MAX_CONDITIONS_BYTES)
    throw new TypeError(`contestConditions take ${length} bytes of JSON, expected at most ${MAX_CONDITIONS_BYTES}.`);
  return { seconds, conditions: given as ContestConditions };
}

function parseConditions(category: string, given: unknown): void {
  if (category !== "expect" && category !== "http-delivery")
    throw new TypeError(`contestConditions.${category} is unknown, expected "expect" or "http-delivery".`);
  const name = `contestConditions["${category}"]`;
  if (typeof given !== "object" || given === null) throw new TypeError(`${name} is not an object.`);
  const { url, ...fields } = given as Record<string, unknown>;
  if (category === "expect" ? url !== undefined : typeof url !== "string" || !URL.canParse(url))
    throw new TypeError(
      `${name}.url is ${String(url)}, expected ${category === "expect" ? "none" : "an absolute URL"}.`,
    );
  for (const [field, value] of Object.entries(fields))
    if (CONDITIONS[field as keyof typeof CONDITIONS]?.(value) !== true)
      throw new TypeError(
        `${name}.${field} is ${String(value)}, expected ${Object.keys(CONDITIONS).join(", ")} with fitting values.`,
      );
  if (category === "expect" && Object.keys(fields).length === 0) throw new TypeError(`${name} has no condition.`);
}
