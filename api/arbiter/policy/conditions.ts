import { z } from "zod";
import { claimFault, type GuardSettings, type TargetFault } from "../../platform/web/target.ts";
import { malformed, refuse } from "../claim.ts";

// The building blocks of claims' conditions, shared by all versions.

/** A SHA-256 in hex of either case, with or without `0x`. Parsed to lowercase without it. */
export const sha256Hex = z
  .string()
  .regex(/^(0x)?[0-9a-f]{64}$/i, "expected a SHA-256: 64 hex digits")
  .transform((text) => text.toLowerCase().replace(/^0x/, ""));

/** A whole number, as a number or as its decimal digits, because the specification leaves the type open. */
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
    // JSON allows minus zero, but it cannot be signed.
    .transform((number) => number + 0);

/** Names under which callers try to pass credentials, or (below) evidence of their choosing. */
const ACCESS =
  /^(headers?|cookies?|auth(orization)?|bearer|tokens?|user(name)?|password|api_?key|credentials?|body|method)$/i;
const OWN_PROOF = /^(screenshots?|images?|logs?|evidence|proofs?|assertions?|statements?|attachments?)$/i;

function ruleAgainst(name: string): { readonly rule: number; readonly why: string } {
  if (ACCESS.test(name)) return { rule: 2, why: "deliverables that require their own access are not verified" };
  if (OWN_PROOF.test(name)) return { rule: 3, why: "the arbiter gathers its own evidence" };
  return { rule: 1, why: "this category has no such condition" };
}

/** An object with exactly these conditions. Any other member is a refusal. */
export function conditionsOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.looseObject(shape).superRefine((given, issues) => {
    for (const name of Object.keys(given).filter((key) => !Object.hasOwn(shape, key))) {
      const { rule, why } = ruleAgainst(name);
      refuse(issues, [name.slice(0, 60)], { message: why, rule });
    }
  });
}

const MAX_URL_LENGTH = 2_048;

const REFUSALS: Readonly<Record<TargetFault, { readonly rule: number; readonly message: string }>> = {
  scheme: { rule: 2, message: "expected an http or https URL" },
  credentials: {
    rule: 2,
    message: "deliverables that require credentials are not verified, and this URL contains credentials",
  },
  port: { rule: 2, message: "expected port 80 or 443" },
  name: { rule: 2, message: "expected a public host name" },
  address: { rule: 2, message: "expected a public address" },
  own_host: { rule: 7, message: "the service does not arbitrate deliverables on its own host" },
};

/** A user name before the host, even an empty one, which `URL` drops. */
const HAS_USERINFO = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*@/i;

/** A public http or https URL without credentials. */
export const urlField = (settings: GuardSettings) =>
  z
    .string()
    .min(1)
    .max(MAX_URL_LENGTH)
    // `URL` silently drops or converts these characters, so the text would not show where it leads.
    .regex(/^[^\p{Cc}\s\\]+$/u, "expected a URL without whitespace, control characters, or backslashes")
    .superRefine((text, issues) => {
      if (!URL.canParse(text)) return malformed(issues, [], "expected an absolute URL");
      const fault = HAS_USERINFO.test(text) ? "credentials" : claimFault(new URL(text), settings);
      if (fault !== null) refuse(issues, [], REFUSALS[fault]);
    });
