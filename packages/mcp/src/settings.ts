import { type Address, type Hex, isAddress } from "viem";
import { parseUsd } from "./money.ts";

export interface Settings {
  /** The service's origin. */
  readonly baseUrl: string;
  /** Null: paid tools return their terms. */
  readonly payerKey: Hex | null;
  /** The only address to pay; null for the one that the service publishes. */
  readonly payTo: Address | null;
  /** A node of Base; null to trust the service about the chain. */
  readonly nodeUrl: string | null;
  /** The file that names the log and witnesses to trust; null if the agent may name them. */
  readonly logPolicy: string | null;
  /** The maximum number of new log entries to read per answer. */
  readonly logEntries: number;
  /** Atomic units. */
  readonly budget: bigint;
}

export const DEFAULT_BUDGET_USD = "2.00";
export const DEFAULT_LOG_ENTRIES = "10000";

/** Reads the environment. A problem never repeats the key. */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): Settings | { problem: string } {
  const { BASE_URL: base = "", PAYER_PRIVATE_KEY: key = "", PAY_TO_ADDRESS: payTo = "", BASE_RPC_URL: node = "" } = env;
  const baseUrl = originOf(base);
  if (baseUrl === null)
    return { problem: "BASE_URL must be the service's origin, like https://trust.example (http only for localhost)." };
  if (key !== "" && !isKey(key))
    return { problem: "PAYER_PRIVATE_KEY must be 0x and 64 hex digits; leave it out to use only the free tools." };
  if (payTo !== "" && !isAddress(payTo, { strict: false }))
    return {
      problem: "PAY_TO_ADDRESS must be 0x and 40 hex digits; leave it out to trust what the service publishes.",
    };
  if (node !== "" && !isHttp(node))
    return {
      problem: "BASE_RPC_URL must be a node's JSON-RPC URL; leave it out to trust the service about the chain.",
    };
  const budget = parseUsd(env.SESSION_BUDGET_USD || DEFAULT_BUDGET_USD);
  if (budget === null) return { problem: "SESSION_BUDGET_USD must be US dollars, like 2.00." };
  const entries = env.LOG_ENTRIES || DEFAULT_LOG_ENTRIES;
  if (!/^\d{1,8}$/.test(entries))
    return { problem: "LOG_ENTRIES must be a number of entries, like 10000; 0 reads none." };
  return {
    baseUrl,
    payerKey: key === "" ? null : key,
    payTo: payTo === "" ? null : payTo,
    nodeUrl: node === "" ? null : node,
    logPolicy: env.LOG_POLICY || null,
    logEntries: Number(entries),
    budget,
  };
}

const isKey = (text: string): text is Hex => /^0x[0-9a-fA-F]{64}$/.test(text);

const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { origin, href, protocol, hostname } = new URL(text);
  const isSafe = protocol === "https:" || (protocol === "http:" && hostname === "localhost");
  return isSafe && href === `${origin}/` ? origin : null;
}
