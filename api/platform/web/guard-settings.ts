import type { Config } from "../config/config.ts";
import type { GuardSettings } from "./target.ts";

/** Returns the limits on the arbiter's fetches on this installation. */
export const guard = ({
  baseUrl,
  arbiterAllowedOrigins,
}: Pick<Config, "baseUrl" | "arbiterAllowedOrigins">): GuardSettings => ({
  allowedOrigins: arbiterAllowedOrigins,
  ownHost: new URL(baseUrl).hostname,
});
