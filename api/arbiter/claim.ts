import { createHash } from "node:crypto";
import { z } from "zod";
import { jcs } from "../platform/signing/document.ts";
import type { GuardSettings } from "../platform/web/target.ts";
import type { Category } from "./policy/category.ts";
import { categoryNamed, openVersions, type PolicyVersions, versionAt, versionFor } from "./policy/version.ts";

/** The part of zod's refinement context that both kinds of issue need. */
export type Issues = Pick<z.RefinementCtx, "addIssue">;

/** Adds an issue for a claim that cannot be parsed (400). */
export const malformed = (issues: Issues, path: readonly string[], message: string): void =>
  issues.addIssue({ code: "invalid_format", format: "claim", path: [...path], message });

/** Adds an issue for a well-formed claim that the policy does not accept (422). */
export const refuse = (
  issues: Issues,
  path: readonly string[],
  { message, rule }: { readonly message: string; readonly rule: number },
): void => issues.addIssue({ code: "custom", path: [...path], message, params: { rule } });

/** JSON as submitted. zod drops a member named `__proto__`, which would hide it from validation and from the hash. */
export const submitted = (rule: number) =>
  z.unknown().superRefine((given, issues) => {
    if (typeof given === "object" && given !== null && Object.hasOwn(given, "__proto__"))
      refuse(issues, ["__proto__"], { message: "no member with this name is allowed", rule });
  });

/** Text with a valid UTF-8 encoding: no lone surrogates. */
export const unicodeText = z.string().superRefine((text, issues) => {
  if (!text.isWellFormed()) malformed(issues, [], "expected text without unpaired surrogates");
});

/** A claim that the arbiter accepts: JSON, so that the journal can store it, without any payload. */
export interface Claim {
  /** The version of the policy that decides it, however late. */
  readonly policyVersion: number;
  readonly category: string;
  /** As parsed by the category's own schema. Only that category reads them. */
  readonly conditions: unknown;
  /** SHA-256 of the conditions as submitted, in lowercase hex. */
  readonly conditionsSha256: string;
}

export interface ClaimSettings extends GuardSettings {
  readonly policies: PolicyVersions;
  readonly now: () => Date;
}

/** Returns the SHA-256, in lowercase hex, of the JCS form (RFC 8785) of `{category, conditions}` as submitted. */
export const conditionsSha256 = (category: string, conditions: unknown): string =>
  createHash("sha256").update(jcs({ category, conditions })).digest("hex");

const SUBMITTED = z.object({
  category: z.string(),
  conditions: submitted(1).pipe(z.record(z.string(), z.unknown())),
});

/**
 * Returns the schema of a claim's category and conditions under the policy in force. A custom issue is a refusal (422)
 * whose `params.rule` is the policy's rule; any other is a malformed claim (400). Other members of the body are left to
 * the caller.
 */
export function claimSchema(settings: ClaimSettings) {
  const { policies, now } = settings;
  const categories = new Set(policies.flatMap((version) => version.categories));
  const schemas = new Map([...categories].map((one) => [one, one.conditions(settings)]));
  return SUBMITTED.transform(({ category: name, conditions }, issues): Claim => {
    const version = versionFor(policies, name, now());
    const category = version && categoryNamed(version, name);
    const parsed = category && schemas.get(category)?.safeParse(conditions);
    if (!parsed) {
      const names = versionAt(policies, now())
        .categories.map((one) => one.name)
        .join(", ");
      refuse(issues, ["category"], { message: `expected one of ${names}`, rule: 1 });
      return z.NEVER;
    }
    if (!parsed.success) {
      for (const issue of parsed.error.issues) addBelow(issues, "conditions", issue);
      return z.NEVER;
    }
    return {
      policyVersion: version.policy.version,
      category: name,
      conditions: parsed.data,
      conditionsSha256: conditionsSha256(name, conditions),
    };
  });
}

/** Returns the categories of the current policy and of upcoming versions. */
export const openCategories = ({ policies, now }: ClaimSettings): readonly Category[] => [
  ...new Set(openVersions(policies, now()).flatMap(({ categories }) => categories)),
];

/** Adds the same issue, one level deeper. */
function addBelow(issues: Issues, step: string, issue: z.core.$ZodIssue): void {
  const path = [step, ...issue.path.map(String)];
  if (issue.code === "custom") refuse(issues, path, { message: issue.message, rule: Number(issue.params?.rule) });
  else malformed(issues, path, issue.message);
}
