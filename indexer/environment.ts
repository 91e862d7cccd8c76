import type { Address } from "../api/platform/wallet.ts";

// The environment that Ponder's files read. The launcher (ponder-process.ts) sets every variable. With plain `ponder start`,
// each has a default, and PONDER_RPC_URL_8453, DATABASE_URL, and DATABASE_SCHEMA are Ponder's own.

const env = process.env;
export const listOf = (text = ""): readonly string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);
const addresses = (text: string | undefined) => listOf(text).map((one) => one.toLowerCase() as Address);

export const SCOPE = env.INDEX_SCOPE === "full" ? "full" : "selective";
export const SCHEMA = env.DATABASE_SCHEMA ?? "public";
/** The block from which USDC's logs are read: the index's first one, or the one after a preloaded history. */
export const START_BLOCK = Number(env.START_BLOCK || 0);
/** The first block whose transfers are in the rows. */
export const FIRST_BLOCK = Number(env.FIRST_BLOCK || START_BLOCK);
export const ESCROWS = addresses(env.ESCROW_ADDRESSES);
/** It may be before the index's first block, because escrow balances are rebuilt from every event. */
export const ESCROW_START_BLOCK = Number(env.ESCROW_START_BLOCK || 0);
/** The service addresses. Transfers from or to them are not counted. */
export const OWN_ADDRESSES: ReadonlySet<Address> = new Set(
  [env.PAY_TO_ADDRESS, env.OWN_ADDRESSES, env.ESCROW_ADDRESSES].flatMap(addresses),
);
/** The operators over base/commerce-payments among the escrows, each with the contract that collects its payers' USDC. */
export const COLLECTORS: ReadonlyMap<Address, Address> = new Map(
  listOf(env.OPERATORS).map((pair) => pair.toLowerCase().split("=") as [Address, Address]),
);
/** The contracts that hold the operators' payments. */
export const CUSTODIES = addresses(env.CUSTODIES);
/** The schema and id of the preloaded history that the index begins with. Both are empty without one. */
export const [HISTORY_SCHEMA, HISTORY_ID] = [env.HISTORY_SCHEMA ?? "", env.HISTORY_ID ?? ""];
