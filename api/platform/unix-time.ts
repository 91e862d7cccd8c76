/** The first second of the year 10000, from which on ISO 8601 needs more than four digits for the year. */
const YEAR_10000 = 253_402_300_800n;

/**
 * The instant of a decimal number of unix seconds; null from the year 10000 on, and for text that is no such number.
 * EIP-3009 allows any 256-bit number, far more than a calendar.
 */
export function dateOfUnix(seconds: string): Date | null {
  if (!/^\d{1,78}$/.test(seconds)) return null;
  const time = BigInt(seconds);
  return time < YEAR_10000 ? new Date(Number(time) * 1000) : null;
}
