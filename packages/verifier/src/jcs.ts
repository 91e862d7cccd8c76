import canonicalize from "canonicalize";
import type { Json } from "./strict-json.ts";

/** Returns the RFC 8785 form of parsed JSON. */
export const jcs = (value: Json): string => canonicalize(value) as string;
