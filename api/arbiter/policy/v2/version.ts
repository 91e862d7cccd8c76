import { decideV2 } from "../../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import { VERSION_1 } from "../v1/version.ts";
import type { PolicyVersion } from "../version.ts";
import { offerBreach } from "./offer-breach.ts";
import { POLICY_V2 } from "./policy.ts";

/** It brings a category. Claims in the others stay with version 1. */
export const VERSION_2: PolicyVersion = {
  policy: POLICY_V2,
  categories: [...VERSION_1.categories, offerBreach],
  unchanged: VERSION_1.categories,
  decide: decideV2,
};
