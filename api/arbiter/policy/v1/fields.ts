import { z } from "zod";
import { refuse } from "../../submitted.ts";

/** SHA-256 in hex of either case, with or without `0x`; returns lower case without it. */
export const sha256Hex = z
  .string()
  .regex(/^(0x)?[0-9a-f]{64}$/i, "expected a SHA-256: 64 hex digits")
  .transform((text) => text.toLowerCase().replace(/^0x/, ""));

/** A whole number, as a number or as its decimal digits: the specification leaves the type open. */
export const wholeNumber = (least: number, most: number) =>
  z
    .union([
      z.number(),
      z
        .string()
        .regex(/^(0|[1-9]\d{0,14})$/)
        .transform(Number),
    ])
    .pipe(z.number().int().min(least).max(most))
    // Minus zero is a number in JSON, but not one that can be signed.
    .transform((number) => number + 0);

/** Names by which callers try to pass credentials, or (below) evidence of their own. */
const ACCESS =
  /^(headers?|cookies?|auth(orization)?|bearer|tokens?|user(name)?|password|api_?key|credentials?|body|method)$/i;
const OWN_PROOF = /^(screenshots?|images?|logs?|evidence|proofs?|assertions?|statements?|attachments?)$/i;

function ruleAgainst(name: string): { readonly rule: number; readonly why: string } {
  if (ACCESS.test(name)) return { rule: 2, why: "deliverables that require their own access are not verified" };
  if (OWN_PROOF.test(name)) return { rule: 3, why: "the arbiter gathers its own evidence" };
  return { rule: 1, why: "this category has no such condition" };
}

/** An object with exactly these conditions; any other is a refusal. */
export function conditionsOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.looseObject(shape).superRefine((given, issues) => {
    for (const name of Object.keys(given).filter((key) => !Object.hasOwn(shape, key))) {
      const { rule, why } = ruleAgainst(name);
      refuse(issues, [name.slice(0, 60)], { message: why, rule });
    }
  });
}
