import type { PolicyVersion } from "../version.ts";
import { ciStatus } from "./ci-status.ts";
import { decide } from "./decide.ts";
import { httpDelivery } from "./http-delivery.ts";
import { payloadHash } from "./payload-hash.ts";
import { POLICY_V1 } from "./policy.ts";

export const VERSION_1: PolicyVersion = {
  policy: POLICY_V1,
  categories: [httpDelivery, payloadHash, ciStatus],
  decide,
};
