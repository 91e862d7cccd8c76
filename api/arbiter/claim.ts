import { createHash } from "node:crypto";
import { z } from "zod";
import { jcs } from "../signing/proof-value.ts";
import type { GuardSettings } from "./guard/target.ts";
import type { Category } from "./policy/category.ts";
import { CATEGORIES } from "./policy/v1/categories.ts";
import { malformed, refuse, submitted } from "./policy/v1/fields.ts";

/** A claim that the arbiter takes. JSON, so that the journal can hold it, and without any payload. */
export interface Claim {
  readonly category: Category["name"];
  /** As the category's own schema parsed them; only that category reads them. */
  readonly conditions: unknown;
  /** SHA-256 of the conditions as submitted, lower-case hex. */
  readonly conditionsSha256: string;
}

/** SHA-256 of the JCS form (RFC 8785) of `{category, conditions}` as submitted, lower-case hex. */
export const conditionsSha256 = (category: string, conditions: unknown): string =>
  createHash("sha256").update(jcs({ category, conditions })).digest("hex");

export const categoryNamed = (name: string): Category | null => CATEGORIES.find((one) => one.name === name) ?? null;

const SUBMITTED = z.object({
  category: z.string(),
  conditions: submitted(1).pipe(z.record(z.string(), z.unknown())),
});

/**
 * The schema of a claim's category and conditions. A custom issue is a refusal (422) whose `params.rule` is the policy's rule;
 * any other is a malformed claim (400). Further members of the body are left to the caller.
 */
export function claimSchema(settings: GuardSettings) {
  const schemas = new Map<string, z.ZodType>(CATEGORIES.map((one) => [one.name, one.conditions(settings)]));
  return SUBMITTED.transform(({ category: name, conditions }, issues): Claim => {
    const [category, schema] = [categoryNamed(name), schemas.get(name)];
    if (category === null || schema === undefined) {
      refuse(issues, ["category"], `expected one of ${CATEGORIES.map((one) => one.name).join(", ")}`, 1);
      return z.NEVER;
    }
    const parsed = schema.safeParse(conditions);
    if (!parsed.success) {
      for (const issue of parsed.error.issues) addBelow(issues, "conditions", issue);
      return z.NEVER;
    }
    return { category: category.name, conditions: parsed.data, conditionsSha256: conditionsSha256(name, conditions) };
  });
}

/** The same issue, a step deeper. */
function addBelow(issues: Parameters<typeof malformed>[0], step: string, issue: z.core.$ZodIssue): void {
  const path = [step, ...issue.path.map(String)];
  if (issue.code === "custom") refuse(issues, path, issue.message, Number(issue.params?.rule));
  else malformed(issues, path, issue.message);
}
