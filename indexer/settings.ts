import { z } from "zod";
import { addressesProblem, addressProblem, refuse, splitList } from "../api/platform/config/values.ts";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import type { Address } from "../api/platform/wallet.ts";
import { SCOPES } from "./ledger.ts";

/** An operator over base/commerce-payments among the escrow contracts; addresses in lower case. */
export interface Operator {
  readonly address: Address;
  /** What holds its payments. */
  readonly custody: Address;
  /** What payers sign their USDC over to; it collects for everybody on Base. */
  readonly collector: Address;
  /** The account in which the custody keeps this operator's USDC. */
  readonly store: Address;
}

const BASE = NETWORKS[MAIN_NETWORK];

const given = (expected: string, accepts: (text: string) => boolean) =>
  z.string({ error: `expected ${expected}` }).refine(accepts, `expected ${expected}`);

const url = (expected: string, protocols: readonly string[]) =>
  given(expected, (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol));

const whole = (low: number, high: number) =>
  given(
    `a whole number from ${low} to ${high}`,
    (text) => /^\d{1,12}$/.test(text) && Number(text) >= low && Number(text) <= high,
  ).transform(Number);

const LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
const logLevel = (otherwise: (typeof LEVELS)[number]) =>
  z.enum(LEVELS, { error: "expected silent, fatal, error, warn, info, debug, or trace" }).default(otherwise);

// Once the hash and the start block are appended, the views' name must fit Ponder's 45 characters.
const schemaName = given(
  "a PostgreSQL schema name: up to 24 characters from a-z, 0-9, and _, starting with a letter",
  (text) => /^[a-z][a-z0-9_]{0,23}$/.test(text),
);

/** The addresses in these lists, in lower case, each once. */
const sortedAddresses = (...lists: readonly (string | undefined)[]): readonly Address[] => {
  const addresses = lists.flatMap((text) => (text === undefined ? [] : splitList(text)));
  return [...new Set(addresses.map((address) => address.toLowerCase() as Address))].sort();
};

const ENVIRONMENT = z.object({
  DATABASE_URL: url("a PostgreSQL URL, like postgres://indexer:secret@localhost:5432/trust", [
    "postgres:",
    "postgresql:",
  ]),
  BASE_RPC_URL: url(`the JSON-RPC URL of a ${BASE.name} node (chain id ${BASE.chainId}), without a comma`, [
    "http:",
    "https:",
  ]).refine((text) => !text.includes(","), "expected one URL; RPC_COPIES says how many times it is listed"),
  BASE_WS_URL: url("the WebSocket URL of the same Base node", ["ws:", "wss:"]).optional(),
  // Ponder starts each listed URL at 20 requests a second; listing the same URL n times gives n times that.
  RPC_COPIES: whole(1, 500).default(1),
  PAY_TO_ADDRESS: z
    .string({ error: "expected the receiving address: 0x and 40 hex digits" })
    .superRefine(refuse("the receiving address", addressProblem)),
  OWN_ADDRESSES: z.string().superRefine(refuse("addresses of the service", addressesProblem)).optional(),
  ESCROW_ADDRESSES: z.string().superRefine(refuse("addresses of escrow contracts", addressesProblem)).optional(),
  ESCROW_START_BLOCK: whole(0, 999_999_999).default(0),
  INDEX_SCOPE: z.enum(SCOPES, { error: "expected selective or full" }).default("selective"),
  START_BLOCK: whole(0, 999_999_999).optional(),
  INDEX_HISTORY: schemaName.optional(),
  INDEX_VIEWS_SCHEMA: schemaName.default("live"),
  POLL_MS: whole(50, 60_000).default(1000),
  PONDER_PORT: whole(0, 65_535).default(0),
  OTHER_CHAIN: z.enum(["stop", "drop"], { error: "expected stop or drop" }).default("stop"),
  OTHER_CHAIN_AFTER_SECONDS: whole(1, 3_600).default(60),
  PRUNE_SECONDS: whole(0, 86_400).default(600),
  INDEX_HEAP_MIB: whole(128, 65_536).default(4096),
  PONDER_LOG_LEVEL: logLevel("warn"),
  LOG_LEVEL: logLevel("info"),
});

function settingsOf(env: z.infer<typeof ENVIRONMENT>) {
  const escrows = sortedAddresses(env.ESCROW_ADDRESSES);
  return {
    databaseUrl: env.DATABASE_URL,
    rpcUrl: env.BASE_RPC_URL,
    rpcCopies: env.RPC_COPIES,
    websocketUrl: env.BASE_WS_URL ?? null,
    /** Addresses of the service itself, in lower case, sorted: their transfers count in no history. */
    ownAddresses: sortedAddresses(env.PAY_TO_ADDRESS, env.OWN_ADDRESSES, ...escrows),
    /** Escrow contracts to follow, in lower case, sorted; they are among `ownAddresses`. */
    escrows,
    /** Those of them that are operators, once the chain was asked (`withOperators`). */
    operators: [] as readonly Operator[],
    /** No later than the first escrow's deployment: balances are rebuilt from all events, however old. */
    escrowStartBlock: env.ESCROW_START_BLOCK,
    scope: env.INDEX_SCOPE,
    /** Null: 90 days before the head at the time the index is first made. */
    startBlock: env.START_BLOCK ?? null,
    /** The schema of a history made by `npm run index:preload`; null: every block is read from the node. */
    historySchema: env.INDEX_HISTORY ?? null,
    viewsSchema: env.INDEX_VIEWS_SCHEMA,
    pollMs: env.POLL_MS,
    /** 0: any free port on the loopback interface. Nothing of ours reads it; Prometheus may (`/metrics`). */
    ponderPort: env.PONDER_PORT,
    /** The action on an index that was made from another chain than the node's. */
    otherChain: env.OTHER_CHAIN,
    /** How long the node must return blocks of another chain. */
    otherChainAfterSeconds: env.OTHER_CHAIN_AFTER_SECONDS,
    /** How often Ponder's copy of the chain is pruned; 0: never. */
    pruneSeconds: env.PRUNE_SECONDS,
    heapMiB: env.INDEX_HEAP_MIB,
    ponderLogLevel: env.PONDER_LOG_LEVEL,
    logLevel: env.LOG_LEVEL,
  };
}

/** The launcher's settings; the environment variables behind them are listed once, in `ENVIRONMENT`. */
export type IndexerSettings = Readonly<ReturnType<typeof settingsOf>>;

/**
 * The settings, or one line per missing or wrong variable saying what is expected. An empty variable counts as missing.
 */
export function parseSettings(
  environment: Readonly<Record<string, string | undefined>>,
): IndexerSettings | { readonly problem: string } {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = ENVIRONMENT.safeParse(set);
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path: [name], message }) => {
      const fault = set[String(name)] === undefined ? "is missing" : "is wrong";
      return `${String(name)} ${fault}: ${message}`;
    });
    return { problem: [...new Set(lines)].join("\n") };
  }
  return settingsOf(parsed.data);
}
