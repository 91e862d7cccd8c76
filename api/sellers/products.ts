import { MAIN_NETWORK, NETWORKS } from "../platform/networks.ts";

/** Where exams are paid for, and where they pay. */
export const EXAM_NETWORK = MAIN_NETWORK;
export const EXAM_ASSET = NETWORKS[EXAM_NETWORK].usdc.address;

/** What an exam costs. It covers whatever the exam can spend: `MOST_RUNS` times three payments at the ceiling. */
export const EXAM_PRICE = 1_000_000n;

/** The most that the examined seller may ask for one payment. */
export const SELLER_CEILING = 150_000n;

/** Payments as quoted in one run, as `packages/seller-check` makes them. */
export const PAYMENTS_A_RUN = 3n;

/** How often an exam may begin to sign. After that it ends without a result. */
export const MOST_RUNS = 2;

/** Within what time the result is there, unless something of ours breaks. */
export const RESULT_WITHIN_SECONDS = 180;

/** How long what a seller quoted counts for an order. */
export const QUOTE_MINUTES = 10;

/** How long an origin is left alone after an exam of it. */
export const COOLDOWN_MINUTES = 10;

/** How often an origin is asked for its quote within `QUOTE_MINUTES`, no matter who wants to know. */
export const PROBES_AN_ORIGIN = 12;

/** How often in an hour sellers are asked for their quotes: for one client, and for all together. */
export const PROBES_AN_HOUR = { client: 30, all: 1_200 };

/** Exams that wait or run at once, in all processes; each process holds as many. */
export const MOST_OPEN = 8;

/** How far ahead a line of consent may expire. */
export const CONSENT_DAYS = 90;

/** The most that an exam can take from our account, at this price of its seller, in atomic units. */
export const mostSpent = (amount: bigint): bigint => BigInt(MOST_RUNS) * (PAYMENTS_A_RUN * amount + 1n);
