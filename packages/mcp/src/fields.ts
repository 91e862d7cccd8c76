import { z } from "zod";

export const wallet = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "expected a wallet: 0x and 40 hex digits")
  .describe("A wallet's address: 0x and 40 hex digits.");

export const maxPrice = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,6})?$/, 'expected US dollars as text, like "0.25"')
  .optional()
  .describe('The most that this call may cost, in US dollars, like "0.25". Without it: the published price.');
