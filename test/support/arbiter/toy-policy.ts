import { z } from "zod";
import { type Category, category } from "../../../api/arbiter/policy/category.ts";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import type { PolicyVersion, PolicyVersions } from "../../../api/arbiter/policy/version.ts";
import type { CategoryName } from "../../../packages/verifier/src/vocabulary.ts";

const [VERSION_1] = POLICY_VERSIONS;

/** The first day of the toy version. */
export const TOY_DAY = "2026-11-25";

/** A category that version 1 does not have. */
const EVEN_NUMBER: Category<{ readonly number: number }> = {
  // This name is not among the service's categories.
  name: "even-number" as CategoryName,
  conditions: () => z.strictObject({ number: z.int() }),
  next: () => null,
  judge: ({ number }) => [
    {
      condition: "even",
      expected: 0,
      observed: number % 2,
      result: number % 2 === 0 ? "true" : "false",
      reason: "toy",
    },
  ],
  facts: () => [],
};

/**
 * Version 2, without ci-status and with an additional category. It never escalates and refunds an unknown condition.
 */
const TOY_V2: PolicyVersion = {
  policy: { ...VERSION_1.policy, version: 2, effective_date: TOY_DAY, status: "a toy" },
  categories: [...VERSION_1.categories.filter(({ name }) => name !== "ci-status"), category(EVEN_NUMBER)],
  decide: (results) => (results.every((result) => result === "true") ? "release" : "refund"),
};

export const WITH_TOY: PolicyVersions = [VERSION_1, TOY_V2];
