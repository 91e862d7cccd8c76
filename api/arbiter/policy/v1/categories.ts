import type { Category } from "../category.ts";
import { ciStatus } from "./ci-status.ts";
import { httpDelivery } from "./http-delivery.ts";
import { payloadHash } from "./payload-hash.ts";

/** What the arbiter verifies. A new one is a file beside these, a line here, and a new version of the policy. */
export const CATEGORIES: readonly Category[] = [httpDelivery, payloadHash, ciStatus];
