import { MAIN_NETWORK, type Network } from "../platform/networks.ts";

export type Variant = "plain" | "scored";

/** SPEC.md, paid routes. */
export const PRICES = { plain: 250_000n, scored: 600_000n } as const;

/** The chain that verdicts are paid on and attestations are for. */
export const ARBITER_NETWORK: Network = MAIN_NETWORK;

/** The period in which either party may request a review (policy, rule 9). */
export const CORRECTION_DAYS = 7;
