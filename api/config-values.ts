import { hkdfSync } from "node:crypto";
import { z } from "zod";
import { type Hex, parseAddress } from "./kernel/wallet.ts";

// What the values of settings have to be like; each names what it expects.

export const url = (what: string, protocols: readonly string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), `expected ${what}`);
export const key32 = (what: string) =>
  z
    .string()
    .refine((text) => /^[A-Za-z0-9_-]{43}$/.test(text), `expected ${what}: 32 bytes as 43 base64url characters`);
export const whole = (low: number, high: number) =>
  z
    .string()
    .regex(/^\d+$/, `expected a whole number from ${low} to ${high}`)
    .transform(Number)
    .refine((n) => n >= low && n <= high, `expected a whole number from ${low} to ${high}`);

export const lower = (address: Hex): Hex => address.toLowerCase() as Hex;
export const contract = (what: string) =>
  z
    .string()
    .refine((text) => parseAddress(text) !== null, `expected the address of ${what} on Base: 0x and 40 hex digits`)
    .transform((text) => lower(text as Hex));

export const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** Items separated by commas, each of which `fits`. */
export const listOf = (what: string, fits: (item: string) => boolean, each = "") =>
  z
    .string()
    .transform((text) => text.split(",").map((item) => item.trim()))
    .refine((items) => items.every(fits), `expected ${what}, comma-separated${each}`);

/** Addresses separated by commas; in lower case. */
export const addressesOf = (what: string) =>
  listOf(what, (item) => parseAddress(item) !== null, ": 0x and 40 hex digits each").transform((items) =>
    items.map((item) => lower(item as Hex)),
  );

/** Without a key of its own, the log has one that follows from the key that signs documents. */
export const logKey = ({
  LOG_KEY,
  SIGNING_KEY,
}: {
  readonly LOG_KEY?: string | undefined;
  readonly SIGNING_KEY: string;
}) =>
  LOG_KEY === undefined
    ? Buffer.from(hkdfSync("sha256", Buffer.from(SIGNING_KEY, "base64url"), "", "tlog-checkpoint", 32))
    : Buffer.from(LOG_KEY, "base64url");
