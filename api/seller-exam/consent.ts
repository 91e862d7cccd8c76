import type { Address } from "../kernel/wallet.ts";
import { CONSENT_DAYS } from "./products.ts";

/** Whose consent to what. It needs no secret: placing it at the origin, or signing it, is the proof. */
export interface ConsentTo {
  /** Our own host, with its port if it has one. */
  readonly host: string;
  readonly origin: string;
  readonly payTo: Address;
}

/** The line that the operator places at `consentUrl`. */
export const consentToken = ({ host, origin, payTo }: ConsentTo): string => `x402-exam v1 ${host} ${origin} ${payTo}`;

/** What the payee's wallet signs instead (EIP-191, ERC-1271). */
export const consentText = (to: ConsentTo, expires: string): string => `${consentToken(to)} until ${expires}`;

/** Where the file is. */
export const consentUrl = (origin: string): string => `${origin}/.well-known/x402-exam.txt`;

/** Lines of the file that are looked at. */
const MOST_LINES = 200;

/** Whether the file has our line. Addresses may be written in mixed case. */
export function hasToken(file: Uint8Array, to: ConsentTo): boolean {
  const wanted = consentToken(to).toLowerCase();
  const lines = new TextDecoder().decode(file.subarray(0, 65_536)).split(/\r?\n/, MOST_LINES);
  return lines.some((line) => line.trim().toLowerCase() === wanted);
}

const SECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** Why a signature until then gives no consent; null if it may. */
export function expiryFault(expires: string, now: Date): string | null {
  const at = SECONDS.test(expires) ? Date.parse(expires) : Number.NaN;
  if (Number.isNaN(at)) return "expires must be a time like 2026-12-31T00:00:00Z";
  if (at <= now.getTime()) return `the consent expired at ${expires}`;
  if (at > now.getTime() + CONSENT_DAYS * 86_400_000) return `expires must be within ${CONSENT_DAYS} days`;
  return null;
}
