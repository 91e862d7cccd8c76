import type { Hex } from "viem";

/** The arbiter of services and escrows under test. */
export const ARBITER_KEY: Hex = `0x${"a7".repeat(32)}`;

/** The receiving address of the services under test; nobody holds its key. */
export const PAY_TO = "0x00000000000000000000000000000000c0ffee01";
