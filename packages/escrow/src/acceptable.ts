import { type Address, getAddress, isAddress, isAddressEqual, zeroAddress } from "viem";
import { type ContestTerms, contestPolicy, contestSecondsOf } from "./contest-terms.ts";
import type { PaymentInfo } from "./payment-info.ts";
import { FEE_BPS, SCHEME, type Token } from "./terms.ts";

/** Payment requirements of x402 version 2, from an untrusted source. */
export interface OfferedTerms {
  readonly scheme: string;
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly extra: Record<string, unknown>;
}

export interface BuyerLimits {
  /** The maximum cost of one payment, in atomic units. */
  readonly maxAmount?: bigint | undefined;
  /** The only escrow contracts trusted with money. */
  readonly escrows?: readonly Address[] | undefined;
}

/** Terms that are safe to sign, before payer and salt are set. */
export interface AcceptableTerms {
  readonly chainId: number;
  readonly escrow: Address;
  readonly token: Token;
  readonly info: Omit<PaymentInfo, "payer" | "salt">;
  /** The conditions that may be contested before the release; undefined for none. */
  readonly contest: ContestTerms | undefined;
}

/** The longest a signed authorization may be valid, in seconds. */
const LONGEST_PRE_APPROVAL_SECONDS = 3600;
/** The longest the arbiter may have to release the money, in seconds. */
const LONGEST_AUTHORIZATION_SECONDS = 48 * 3600;

/** Thrown for terms that are dangerous or not understood; nothing was signed. */
export class RefusedTerms extends Error {}

/**
 * Parses the terms of an escrowed sale, and refuses those that a buyer must not sign.
 * @throws RefusedTerms naming the field, its value, and the accepted values
 */
export function accept(offered: OfferedTerms, limits: BuyerLimits, nowMs: number): AcceptableTerms {
  const { extra } = offered;
  if (offered.scheme !== SCHEME) refuse("scheme", offered.scheme, SCHEME);
  const chainId = Number(/^eip155:([1-9]\d{0,15})$/.exec(offered.network)?.[1] ?? Number.NaN);
  if (!Number.isSafeInteger(chainId)) refuse("network", offered.network, "eip155 and a chain id");
  const escrow = contractOf(extra, limits);
  if (extra.settlementMethod !== "authorize") refuse("extra.settlementMethod", extra.settlementMethod, "authorize");
  for (const field of ["minFeeBps", "maxFeeBps"] as const) {
    if (extra[field] !== FEE_BPS) refuse(`extra.${field}`, extra[field], FEE_BPS);
  }
  const token = {
    address: address("asset", offered.asset),
    name: text("name", extra),
    version: text("version", extra),
  };
  const info = {
    operator: escrow,
    receiver: address("payTo", offered.payTo),
    token: token.address,
    maxAmount: amountOf(offered.amount, limits),
    ...expiries(extra, Math.floor(nowMs / 1000)),
    minFeeBps: FEE_BPS,
    maxFeeBps: FEE_BPS,
    feeReceiver: address("extra.feeReceiver", extra.feeReceiver),
  };
  return { chainId, escrow, token, info, contest: contestIn(extra, contestSecondsOf(info)) };
}

/** One contract must have all three roles, because a different operator or collector could send the money elsewhere. */
function contractOf(extra: Record<string, unknown>, { escrows }: BuyerLimits): Address {
  const escrow = address("extra.escrowAddress", extra.escrowAddress);
  for (const field of ["operatorAddress", "tokenCollector"] as const) {
    const role = address(`extra.${field}`, extra[field]);
    if (!isAddressEqual(role, escrow)) refuse(`extra.${field}`, role, `the escrow itself, ${escrow}`);
  }
  if (escrows !== undefined && !escrows.some((known) => isAddressEqual(known, escrow))) {
    refuse("extra.escrowAddress", escrow, `one of ${escrows.join(", ")}`);
  }
  return escrow;
}

/** The offered contest must be the one that the signature will bind. */
function contestIn(extra: Record<string, unknown>, seconds: number): ContestTerms | undefined {
  if (seconds === 0)
    return extra.contest === undefined
      ? undefined
      : refuse("extra.contest", extra.contest, "none: the terms have no window");
  const { seconds: offered, conditions } = (extra.contest ?? {}) as Record<string, unknown>;
  if (offered !== seconds) refuse("extra.contest.seconds", offered, `${seconds}, the window of the terms`);
  if (typeof conditions !== "object" || conditions === null)
    return refuse("extra.contest.conditions", conditions, "an object");
  const contest = { seconds, conditions };
  const policy = address("extra.policy", extra.policy);
  const wanted = contestPolicy(contest);
  if (policy !== wanted) refuse("extra.policy", policy, `${wanted}, the hash of extra.contest`);
  return contest;
}

function amountOf(amount: string, { maxAmount }: BuyerLimits): bigint {
  const atomic = /^\d{1,37}$/.test(amount) ? BigInt(amount) : 0n;
  if (atomic === 0n || atomic >= 2n ** 120n) refuse("amount", amount, "a positive number of atomic units");
  if (maxAmount !== undefined && atomic > maxAmount) refuse("amount", amount, `at most ${maxAmount}`);
  return atomic;
}

function expiries(extra: Record<string, unknown>, now: number) {
  const preApprovalExpiry = time("preApprovalExpirySeconds", extra, {
    least: now + 1,
    most: now + LONGEST_PRE_APPROVAL_SECONDS,
  });
  const authorizationExpiry = time("authorizationExpirySeconds", extra, {
    least: preApprovalExpiry,
    most: now + LONGEST_AUTHORIZATION_SECONDS,
  });
  const refundExpiry = time("refundExpirySeconds", extra, { least: authorizationExpiry, most: 2 ** 48 - 1 });
  return { preApprovalExpiry, authorizationExpiry, refundExpiry };
}

function time(name: string, extra: Record<string, unknown>, { least, most }: { least: number; most: number }): number {
  const value = extra[name];
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    return refuse(`extra.${name}`, value, `unix seconds from ${least} to ${most}`);
  }
  return value;
}

function text(name: string, extra: Record<string, unknown>): string {
  const value = extra[name];
  return typeof value === "string" && value !== "" ? value : refuse(`extra.${name}`, value, "a string");
}

function address(name: string, value: unknown): Address {
  if (typeof value !== "string" || !isAddress(value, { strict: false }) || isAddressEqual(value, zeroAddress)) {
    return refuse(name, value, "a nonzero address");
  }
  return getAddress(value);
}

function refuse(field: string, got: unknown, wanted: unknown): never {
  const shown = (JSON.stringify(got) ?? "missing").slice(0, 100);
  throw new RefusedTerms(`These escrow terms are refused: ${field} is ${shown}, expected ${String(wanted)}.`);
}
