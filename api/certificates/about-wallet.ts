import { UNATTRIBUTED_FAILS } from "../../packages/verifier/src/tlog/wallet-log.ts";

const PRODUCTS = UNATTRIBUTED_FAILS.map((product) => `'${product}'`).join(", ");

/** SQL that is true of a certificate that says something about its wallet (`isAboutWallet`). */
export const aboutWallet = (c: string): string => `(${c}.result = 'pass' OR ${c}.product NOT IN (${PRODUCTS}))`;

/**
 * SQL that is true of a certificate whose settlements all stand. `OFFSET 0` keeps the planner from joining whole tables: this
 * is a key look-up for one certificate.
 */
export const notReversed = (c: string): string => `NOT EXISTS (SELECT FROM settlement_mark m
  WHERE m.payer = ${c}.wallet AND m.nonce IN (${c}.nonce, ${c}.also_nonce, ${c}.third_nonce) AND m.chain = ${c}.chain AND m.asset = ${c}.asset AND m.kind = 'reversed' OFFSET 0)`;
