import { z } from "zod";
import { parseUsd } from "./money.ts";

const ADDRESS_LENGTH = 42;

export const wallet = z
  .string()
  .regex(/^((did:pkh:)?eip155:8453:)?0x[0-9a-fA-F]{40}$/, "expected a wallet: 0x and 40 hex digits")
  .overwrite((text) => text.slice(-ADDRESS_LENGTH))
  .describe("An address: 0x and 40 hex digits, also as CAIP-10 or did:pkh on Base.");

export const origin = z
  .string()
  .max(800)
  .regex(/^https?:\/\/[^\s/?#]+\/?$/i, "expected an origin like https://shop.example, without a path")
  .describe("Like https://shop.example, without a path.");

const USD = 'expected US dollars with at most six decimals, like "0.25" or 0.25';

/** A number counts as the decimal it is written as, without any arithmetic. */
export const maxPrice = z
  .union([z.string().meta({ pattern: "^[0-9]{1,9}([.][0-9]{1,6})?$" }), z.number()], { error: USD })
  .refine((usd) => parseUsd(String(usd)) !== null, USD)
  .optional()
  .describe('At most this many USDC, like "0.25". Defaults to the published price.');
