import type { Address } from "../api/platform/wallet.ts";

// What Ponder's files read of the environment. The launcher (ponder-process.ts) sets all of it; with plain `ponder start` each
// variable has a default, and PONDER_RPC_URL_8453, DATABASE_URL and DATABASE_SCHEMA are Ponder's own.

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
/** Escrow balances are rebuilt from every event, so it may be before the index's first block. */
export const ESCROW_START_BLOCK = Number(env.ESCROW_START_BLOCK || 0);
/** The service's addresses: transfers from or to them count in no history. */
export const OWN_ADDRESSES: ReadonlySet<Address> = new Set(
  [env.PAY_TO_ADDRESS, env.OWN_ADDRESSES, env.ESCROW_ADDRESSES].flatMap(addresses),
);
/** The escrows that are operators over base/commerce-payments, each with the contract that collects its payers' USDC. */
export const COLLECTORS: ReadonlyMap<Address, Address> = new Map(
  listOf(env.OPERATORS).map((pair) => pair.toLowerCase().split("=") as [Address, Address]),
);
/** What holds the operators' payments. */
export const CUSTODIES = addresses(env.CUSTODIES);
/** The schema of the preloaded history that the index begins with, and the history's id; empty without one. */
export const [HISTORY_SCHEMA, HISTORY_ID] = [env.HISTORY_SCHEMA ?? "", env.HISTORY_ID ?? ""];
