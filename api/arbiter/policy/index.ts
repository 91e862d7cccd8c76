import { VERSION_1 } from "./v1/policy.ts";
import { VERSION_2 } from "./v2/policy.ts";
import type { PolicyVersions } from "./version.ts";

/** All versions that decide claims, earliest first. A new version is a folder next to `v1` and an entry here. */
export const POLICY_VERSIONS: PolicyVersions = [VERSION_1, VERSION_2];
