import { z } from "zod";

/** The part of zod's refinement context that both kinds of issue need. */
export type Issues = Pick<z.RefinementCtx, "addIssue">;

/** A claim that cannot be read: answered with 400. */
export const malformed = (issues: Issues, path: readonly string[], message: string): void =>
  issues.addIssue({ code: "invalid_format", format: "claim", path: [...path], message });

/** A claim that can be read and that the policy does not take: answered with 422. */
export const refuse = (
  issues: Issues,
  path: readonly string[],
  { message, rule }: { readonly message: string; readonly rule: number },
): void => issues.addIssue({ code: "custom", path: [...path], message, params: { rule } });

/** JSON as submitted. zod drops a member `__proto__`, so neither a refusal nor the hash would see it. */
export const submitted = (rule: number) =>
  z.unknown().superRefine((given, issues) => {
    if (typeof given === "object" && given !== null && Object.hasOwn(given, "__proto__"))
      refuse(issues, ["__proto__"], { message: "no member with this name is allowed", rule });
  });

/** Text that has a UTF-8 form: no lone surrogates. */
export const unicodeText = z.string().superRefine((text, issues) => {
  if (!text.isWellFormed()) malformed(issues, [], "expected text without unpaired surrogates");
});
