import { VERSION_1 } from "./v1/policy.ts";
import { VERSION_2 } from "./v2/policy.ts";
import type { PolicyVersions } from "./version.ts";

/** Every version the arbiter decides by, earliest first. A new one is a folder beside `v1` and an entry here. */
export const POLICY_VERSIONS: PolicyVersions = [VERSION_1, VERSION_2];
