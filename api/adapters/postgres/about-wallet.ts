import { UNATTRIBUTED_FAILS } from "../../../packages/verifier/src/tlog/wallet-log.ts";

const PRODUCTS = UNATTRIBUTED_FAILS.map((product) => `'${product}'`).join(", ");

/** SQL that is true of a certificate that says something about its wallet (`isAboutWallet`). */
export const aboutWallet = (c: string): string => `(${c}.result = 'pass' OR ${c}.product NOT IN (${PRODUCTS}))`;
