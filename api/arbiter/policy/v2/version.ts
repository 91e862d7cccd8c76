import { decideV2 } from "../../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import { payloadHash } from "../v1/payload-hash.ts";
import type { PolicyVersion } from "../version.ts";
import { ciStatusV2 } from "./ci-status.ts";
import { httpDeliveryV2 } from "./http-delivery.ts";
import { offerBreach } from "./offer-breach.ts";
import { POLICY_V2 } from "./policy.ts";

/** It brings a category and changes two. Claims in the fourth stay with version 1. */
export const VERSION_2: PolicyVersion = {
  policy: POLICY_V2,
  categories: [httpDeliveryV2, payloadHash, ciStatusV2, offerBreach],
  unchanged: [payloadHash],
  decide: decideV2,
};
