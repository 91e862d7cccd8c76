import type { Hex } from "viem";

/** The arbiter of services and escrows under test. */
export const ARBITER_KEY: Hex = `0x${"a7".repeat(32)}`;
