import { z } from "zod";
import { type Address, type Hex, parseAddress } from "../../../platform/wallet.ts";
import type { Payload } from "../../scheme.ts";

const integer = z
  .union([z.string().regex(/^\d{1,78}$/), z.number().int().nonnegative().refine(Number.isSafeInteger)])
  .transform((value) => BigInt(value))
  .refine((value) => value < 2n ** 256n);
const address = z.string().transform((text, context): Address => {
  const parsed = parseAddress(text);
  if (parsed === null) context.addIssue({ code: "custom", message: "expected an address: 0x and 40 hex digits" });
  return parsed ?? "0x";
});
const hex = (pattern: RegExp, expected: string) =>
  z
    .string()
    .regex(pattern, expected)
    .transform((text) => text.toLowerCase() as Hex);

const PAYLOAD = z.object({
  signature: hex(/^0x([0-9a-f]{2}){1,4096}$/i, "expected hex bytes"),
  authorization: z.object({
    from: address,
    to: address,
    value: integer,
    validAfter: integer,
    validBefore: integer,
    nonce: hex(/^0x[0-9a-f]{64}$/i, "expected 32 bytes in hex"),
  }),
});

/** Reads `{signature, authorization}`, the payload of EIP-3009 payments. */
export function parsePayload(payload: unknown): Payload | { readonly malformed: string } {
  const parsed = PAYLOAD.safeParse(payload);
  if (parsed.success) return { ...parsed.data, details: null };
  const issue = parsed.error.issues[0];
  return { malformed: `${["payload", ...(issue?.path ?? [])].join(".")}: ${issue?.message ?? "unexpected"}` };
}
