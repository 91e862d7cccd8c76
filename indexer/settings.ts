import { z } from "zod";
import type { EscrowContract } from "../api/payments/schemes/escrowed.ts";
import { type Environment, readEnvironment } from "../api/platform/config/environment.ts";
import { addressesOf, addressOf, isHttp, listOf, nodeList, url, whole } from "../api/platform/config/values.ts";
import { MAIN_NETWORK, MAIN_NETWORK_KEYS, NETWORKS, type RpcVariable } from "../api/platform/networks.ts";
import type { Address } from "../api/platform/wallet.ts";
import { SCOPES } from "./ledger.ts";

/** An operator over base/commerce-payments among the escrow contracts. All operators on Base share its collector. */
export type Operator = Pick<EscrowContract, "address" | "custody" | "collector" | "store">;

const LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
const LEVEL = z.enum(LEVELS, { error: "expected silent, fatal, error, warn, info, debug, or trace" });
const SCOPE = z.enum(SCOPES, { error: "expected selective or full" });
const START_BLOCK = whole(0, 999_999_999);
// Once the hash and the start block are appended, the views' name must fit Ponder's 45 characters.
const NAME = /^[a-z][a-z0-9_]{0,23}$/;
const SCHEMA = z.string().regex(NAME, "expected a schema name: up to 24 of a-z, 0-9, and _, starting with a letter");

const { name, rpcVariable } = NETWORKS[MAIN_NETWORK];
const RPC_URL = {
  [rpcVariable]: nodeList(`the JSON-RPC URLs of ${name} nodes, comma-separated; RPC_COPIES lists each several times`),
} as Record<RpcVariable, ReturnType<typeof nodeList>>;

const ENVIRONMENT = z.object({
  DATABASE_URL: url("a PostgreSQL URL, like postgres://user:password@host/trust", ["postgres:", "postgresql:"]),
  MAIN_NETWORK: z.enum(MAIN_NETWORK_KEYS, { error: `expected ${MAIN_NETWORK_KEYS.join(" or ")}` }).optional(),
  ...RPC_URL,
  // Ponder starts each listed URL at 20 requests per second. Listing the same URL n times gives n times that.
  RPC_COPIES: whole(1, 500).default(1),
  PAY_TO_ADDRESS: addressOf("the receiving address"),
  OWN_ADDRESSES: addressesOf("addresses of the service").default([]),
  ESCROW_ADDRESSES: addressesOf("addresses of escrow contracts").default([]),
  ESCROW_START_BLOCK: START_BLOCK.default(0),
  INDEX_SCOPE: SCOPE.default("selective"),
  START_BLOCK: START_BLOCK.optional(),
  INDEX_HISTORY: SCHEMA.optional(),
  INDEX_VIEWS_SCHEMA: SCHEMA.default("live"),
  POLL_MS: whole(50, 60_000).default(1000),
  PONDER_PORT: whole(0, 65_535).default(0),
  INDEX_HEAP_MIB: whole(128, 65_536).default(4096),
  PONDER_LOG_LEVEL: LEVEL.default("warn"),
  LOG_LEVEL: LEVEL.default("info"),
});

const sorted = (addresses: readonly Address[]): readonly Address[] => [...new Set(addresses)].sort();

const settingsOf = (env: z.infer<typeof ENVIRONMENT>) => ({
  databaseUrl: env.DATABASE_URL,
  rpcUrls: env[rpcVariable],
  rpcCopies: env.RPC_COPIES,
  /** The service addresses, including the escrows, sorted. Their transfers are not counted. */
  ownAddresses: sorted([env.PAY_TO_ADDRESS, ...env.OWN_ADDRESSES, ...env.ESCROW_ADDRESSES]),
  escrows: sorted(env.ESCROW_ADDRESSES),
  /** The operators among the escrows, filled by `withOperators`. */
  operators: [] as readonly Operator[],
  /** No later than the first escrow's deployment, because balances are rebuilt from all events. */
  escrowStartBlock: env.ESCROW_START_BLOCK,
  scope: env.INDEX_SCOPE,
  /** Null means 90 days before the head when the index is first created. */
  startBlock: env.START_BLOCK ?? null,
  /** The schema of a history made by `npm run index:preload`, or null to read every block from the node. */
  historySchema: env.INDEX_HISTORY ?? null,
  viewsSchema: env.INDEX_VIEWS_SCHEMA,
  pollMs: env.POLL_MS,
  /** The port for Prometheus on the loopback interface; 0 is any free port. */
  ponderPort: env.PONDER_PORT,
  heapMiB: env.INDEX_HEAP_MIB,
  ponderLogLevel: env.PONDER_LOG_LEVEL,
  logLevel: env.LOG_LEVEL,
});

export type IndexerSettings = Readonly<ReturnType<typeof settingsOf>>;

export function parseSettings(environment: Environment): IndexerSettings | { readonly problem: string } {
  const { data, problems } = readEnvironment(ENVIRONMENT, environment);
  return data === undefined ? { problem: problems.join("\n") } : settingsOf(data);
}

const URLS = listOf("HTTP or HTTPS URLs", isHttp).optional();
const FETCH_RPC_URL = { [rpcVariable]: URLS } as Record<RpcVariable, typeof URLS>;
const FETCH_ENVIRONMENT = z.object({
  FETCH_RPC_URLS: URLS,
  ...FETCH_RPC_URL,
  FETCH_PER_SECOND: whole(1, 10_000).default(20),
  INDEX_SCOPE: z.literal("selective", { error: "expected selective: only authorized payments are fetched" }).optional(),
  START_BLOCK: START_BLOCK.optional(),
});

export type FetchSettings = Exclude<ReturnType<typeof parseFetchSettings>, { problem: string }>;

/** Parses the configuration of `npm run index:fetch`, or returns the problem. */
export function parseFetchSettings(environment: Environment) {
  const { data, problems } = readEnvironment(FETCH_ENVIRONMENT, environment);
  if (data === undefined) return { problem: problems.join("\n") };
  const { FETCH_RPC_URLS, FETCH_PER_SECOND, START_BLOCK } = data;
  const urls: readonly string[] | undefined = FETCH_RPC_URLS ?? data[rpcVariable];
  if (urls === undefined)
    return { problem: `FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of ${name} nodes, or ${rpcVariable}` };
  return { urls, perSecond: FETCH_PER_SECOND, startBlock: START_BLOCK ?? null };
}
