import { MAIN_NETWORK, NETWORKS } from "../platform/networks.ts";

/** The network on which exams are paid for and make their payments. */
export const EXAM_NETWORK = MAIN_NETWORK;
export const EXAM_ASSET = NETWORKS[EXAM_NETWORK].usdc.address;

/**
 * The price of an exam. It covers the most that the exam can spend: `MOST_RUNS` times three payments at the ceiling.
 */
export const EXAM_PRICE = 1_000_000n;

/** The most that the examined seller may ask for one payment. */
export const SELLER_CEILING = 150_000n;

/** The payments in one run of `packages/seller-check`, each at the quoted price. */
export const PAYMENTS_A_RUN = 3n;

/** The most runs in which an exam may sign. After these, it ends without a result. */
export const MOST_RUNS = 2;

/** The time within which the result is available, unless our side fails. */
export const RESULT_WITHIN_SECONDS = 180;

/** The time for which a seller's quote is valid for an order. */
export const QUOTE_MINUTES = 10;

/** The pause after an exam of an origin. */
export const COOLDOWN_MINUTES = 10;

/** The most quotes requested from an origin within `QUOTE_MINUTES`, by all clients together. */
export const PROBES_AN_ORIGIN = 12;

/** The most quotes requested from sellers per hour, for one client and for all together. */
export const PROBES_AN_HOUR = { client: 30, all: 1_200 };

/** The most exams that wait or run at a time in all processes. A single process can run all of them. */
export const MOST_OPEN = 8;

/** The longest time until a line of consent expires. */
export const CONSENT_DAYS = 90;

/** Returns the most that an exam can take from our account at this price, in atomic units. */
export const mostSpent = (amount: bigint): bigint => BigInt(MOST_RUNS) * (PAYMENTS_A_RUN * amount + 1n);
