import { isIP } from "node:net";
import { z } from "zod";
import { ERC8004 } from "../../../contracts/erc8004.ts";
import type { AccountKey } from "../chain/remote-signer.ts";
import {
  eachNetwork,
  MAIN_NETWORK,
  MAIN_NETWORK_KEYS,
  NETWORKS,
  type NetworkFacts,
  type RpcVariable,
} from "../networks.ts";
import { parseRetiredKeys } from "../signing/keys.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { type FacilitatorAuth, facilitatorAuth } from "./facilitator-auth.ts";
import { LOG_VARIABLES, logSettings, policyProblem } from "./log-settings.ts";
import { accountKeyOf, accountKeyProblems, roleProblems } from "./roles.ts";
import {
  accountKey,
  addressesOf,
  addressOf,
  contract,
  isHost,
  isHttp,
  isLoopback,
  key32,
  keys32,
  listOf,
  lower,
  MINIMUM_AMOUNT,
  nodeList,
  url,
  whole,
} from "./values.ts";

/** The data to send to an OpenTelemetry collector. */
export interface TelemetrySettings {
  readonly traces: boolean;
  readonly metrics: boolean;
  /** The share of traces that is kept. */
  readonly sampled: number;
  readonly metricsEveryMs: number;
}

const otlp = z.string().refine(isHttp, "expected the URL of an OTLP/HTTP collector, like http://127.0.0.1:4318");
const exporter = z.enum(["otlp", "none"], { error: "expected otlp or none" });
const SAMPLERS = ["always_on", "always_off", "traceidratio"] as const;
const NAMES = [...SAMPLERS, ...SAMPLERS.map((name) => `parentbased_${name}` as const)] as const;

/** The OpenTelemetry variables that select what to start. The exporters read the rest. */
const TELEMETRY = z.object({
  OTEL_SDK_DISABLED: z.enum(["true", "false"], { error: "expected true or false" }).default("false"),
  OTEL_EXPORTER_OTLP_ENDPOINT: otlp.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: otlp.optional(),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: otlp.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.literal("http/json", { error: "expected http/json, the only one here" }).optional(),
  OTEL_TRACES_EXPORTER: exporter.default("otlp"),
  OTEL_METRICS_EXPORTER: exporter.default("otlp"),
  // No trace begins outside this process, so none has a parent.
  OTEL_TRACES_SAMPLER: z.enum(NAMES, { error: `expected ${NAMES.join(", ")}` }).default("parentbased_always_on"),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .refine((text) => Number(text) >= 0 && Number(text) <= 1, "expected a number from 0 to 1")
    .default("1"),
  OTEL_METRIC_EXPORT_INTERVAL: whole(1, 3_600_000).default(60_000),
});

/** Returns null unless a collector is named. */
function telemetrySettings(environment: Environment): {
  readonly telemetry: TelemetrySettings | null;
  readonly problems: readonly string[];
} {
  const named = Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith("OTEL_")));
  const { data, problems } = readEnvironment(TELEMETRY, named);
  if (data === undefined) return { telemetry: null, problems };
  const all = data.OTEL_EXPORTER_OTLP_ENDPOINT;
  const traces = (data.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? all) !== undefined && data.OTEL_TRACES_EXPORTER === "otlp";
  const metrics =
    (data.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ?? all) !== undefined && data.OTEL_METRICS_EXPORTER === "otlp";
  if (data.OTEL_SDK_DISABLED === "true" || !(traces || metrics)) return { telemetry: null, problems };
  const sampler = data.OTEL_TRACES_SAMPLER.replace("parentbased_", "");
  const sampled = sampler === "traceidratio" ? Number(data.OTEL_TRACES_SAMPLER_ARG) : Number(sampler === "always_on");
  const telemetry = { traces, metrics, sampled, metricsEveryMs: data.OTEL_METRIC_EXPORT_INTERVAL };
  return { telemetry, problems };
}

const isRange = (text: string): boolean => {
  const [address = "", prefix, ...more] = text.split("/");
  const bits = isIP(address) === 6 ? 128 : 32;
  const isWhole = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  return isIP(address) !== 0 && isWhole && more.length === 0;
};

const nodeOf = ({ name, chainId }: NetworkFacts): string =>
  `the JSON-RPC URL of a ${name} node (chain id ${chainId}), or of several, comma-separated`;
const RPC_URLS = Object.fromEntries(
  Object.values(NETWORKS).map((facts) => [facts.rpcVariable, nodeList(nodeOf(facts))]),
) as Record<RpcVariable, ReturnType<typeof nodeList>>;

const ENVIRONMENT = z.object({
  FORMER_HOSTS: listOf("former hosts of BASE_URL, like old.example", isHost).default([]),
  PORT: whole(0, 65535).default(4020),
  HOST: z.string().min(1).optional(),
  BASE_URL: url("an absolute http(s) URL without a path, like https://trust.example", ["http:", "https:"])
    .refine(
      (text) => !URL.canParse(text) || (new URL(text).pathname === "/" && !text.endsWith("/") && !new URL(text).search),
      "expected no path, query, or trailing slash",
    )
    .refine(
      (text) => !URL.canParse(text) || !/^(\[|[\d.]+$)/.test(new URL(text).hostname),
      "expected a host name: signed documents name a did:web issuer, which cannot be an IP address",
    )
    .optional(),
  DATABASE_URL: url("a PostgreSQL URL, like postgres://api:secret@localhost:5432/trust", ["postgres:", "postgresql:"]),
  MAIN_NETWORK: z.enum(MAIN_NETWORK_KEYS, { error: `expected ${MAIN_NETWORK_KEYS.join(" or ")}` }).optional(),
  ...RPC_URLS,
  LOOKUP_RPC_URLS: listOf("JSON-RPC URLs of Base nodes", isHttp).optional(),
  LOOKUPS_PER_SECOND: whole(1, 10_000).default(20),
  LOOKUPS_PER_CLIENT: whole(0, 1_000_000).default(200),
  LOOKUPS_PER_HOUR: whole(0, 1_000_000_000).default(5_000),
  OWN_ADDRESSES: addressesOf("addresses of the service").default([]),
  LOG_BLOCK_RANGE: whole(1, 1_000_000).default(9_000),
  RPC_BATCH: whole(1, 1_000).default(10),
  PAY_TO_ADDRESS: addressOf("the receiving address"),
  FACILITATOR_URL: url("the URL of an x402 facilitator", ["http:", "https:"]).optional(),
  FACILITATOR_AUTH: facilitatorAuth.optional(),
  FACILITATOR_PRIVATE_KEY: accountKey("a private key").optional(),
  FACILITATOR_ADDRESS: addressOf("the in-process facilitator's account").optional(),
  SIGNER_URL: listOf("JSON-RPC URLs of remote signers, like http://127.0.0.1:9000", isHttp).optional(),
  SETTLEMENT_COST_PERCENT: whole(0, 1_000).default(50),
  BATCH_MAX: whole(1, 100).default(50),
  BATCH_WAIT_MS: whole(1, 10_000).default(200),
  FAILED_GAS_USD_PER_DAY: whole(1, 1_000_000).default(50),
  ETH_PRICE_USD: whole(1, 1_000_000).default(3_000),
  SIGNING_KEY: key32("the Ed25519 private key that signs documents"),
  RETIRED_SIGNING_KEYS: z
    .string()
    .transform((text, context) => {
      const { keys, problems } = parseRetiredKeys(text);
      for (const message of problems) context.addIssue({ code: "custom", message });
      return keys;
    })
    .default([]),
  ...LOG_VARIABLES,
  SEALING_KEY: key32("the key that encrypts payers' signatures at rest"),
  RETIRED_SEALING_KEYS: keys32("keys that encrypted payers' signatures before").default([]),
  DECOY_SEED: key32("the seed of decoy addresses"),
  ESCROW_ADDRESSES: addressesOf("escrow contracts and operators on Base, the current one of each kind first").default(
    [],
  ),
  ERC6492_FACTORIES: addressesOf("factories of smart wallets on Base").default([]),
  EVALUATOR_ADDRESS: contract("the evaluator of ERC-8183 jobs").optional(),
  ESCROW_MINIMUM: whole(MINIMUM_AMOUNT, 1_000_000_000).default(MINIMUM_AMOUNT),
  ESCROW_PAYER_GAS: whole(0, 1_000_000_000_000).default(20_000_000),
  ESCROW_KEEPER_GAS: whole(0, 1_000_000_000_000).default(100_000_000),
  ERC8004_FEEDBACK: z.enum(["on", "off"], { error: "expected on or off" }).default("off"),
  ERC8004_IDENTITY: contract("ERC-8004's registry of agents").default(lower(ERC8004.identity)),
  ERC8004_REPUTATION: contract("ERC-8004's registry of feedback").default(lower(ERC8004.reputation)),
  ERC8004_VALIDATION: contract("ERC-8004's registry of validations").optional(),
  ERC8004_DAILY_GAS: whole(0, 1_000_000_000_000).default(20_000_000),
  EXAM_PRIVATE_KEY: accountKey("the private key that pays in exams of sellers").optional(),
  EXAM_ADDRESS: addressOf("the account that pays in exams of sellers").optional(),
  EXAM_DAILY_SPEND: whole(0, 1_000_000_000_000).default(50_000_000),
  ARBITER_PRIVATE_KEY: accountKey("the arbiter's private key").optional(),
  ARBITER_ADDRESS: addressOf("the arbiter's account").optional(),
  ARBITER_ALLOWED_ORIGINS: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .refine(
      (origins) => origins.every((text) => URL.canParse(text) && new URL(text).origin === text),
      "expected exact origins, comma-separated, like http://localhost:8080",
    )
    .default([]),
  GITHUB_API_URL: url("the URL of GitHub's REST API", ["http:", "https:"])
    .transform((text) => text.replace(/\/$/, ""))
    .default("https://api.github.com"),
  GITHUB_TOKEN: z.string().optional(),
  SECURITY_CONTACT: url("a URI for security reports, like mailto:security@trust.example", [
    "mailto:",
    "https:",
    "tel:",
  ]).optional(),
  ABUSE_CONTACT: url("a URI for reports of abuse and requests about privacy, like mailto:abuse@trust.example", [
    "mailto:",
    "https:",
    "tel:",
  ]).optional(),
  OPERATOR: z.string().max(200, "expected at most 200 characters").optional(),
  INDEX_VIEWS_SCHEMA: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,40}$/, "expected a lowercase PostgreSQL schema name")
    .default("live"),
  RATE_LIMIT_PER_MINUTE: whole(0, 1_000_000).default(1200),
  TRUSTED_PROXIES: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .refine(
      (ranges) => ranges.every(isRange),
      "expected the addresses or ranges of your reverse proxies, comma-separated, like 10.0.0.0/8, ::1",
    )
    .default([]),
  METRICS_PORT: whole(0, 65535).optional(),
  METRICS_HOST: z.string().min(1).default("127.0.0.1"),
  DRAIN_SECONDS: whole(0, 600).optional(),
  STOP_WITHIN_SECONDS: whole(1, 3_600).default(25),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});

/** The accepted values of the variables. */
export type Variables = z.infer<typeof ENVIRONMENT>;

type Settings = ReturnType<typeof settingsOf>;

/** The settings of the service. */
export type Config = {
  readonly [Name in keyof Settings]: Settings[Name] extends (infer Item)[] ? readonly Item[] : Settings[Name];
};

/** Returns the settings, or one message that names every missing or invalid variable and the expected value. */
export function parseConfig(environment: Environment): Config | { readonly problem: string } {
  const { given, data: env, problems } = readEnvironment(ENVIRONMENT, environment);
  const isSet = (name: string) => given[name] !== undefined || Boolean(environment[`${name}_FILE`]);
  const hasOwn = isSet("FACILITATOR_PRIVATE_KEY") || isSet("FACILITATOR_ADDRESS");
  if (isSet("FACILITATOR_URL") === hasOwn) problems.push(ONE_FACILITATOR);
  if (!isSet("ARBITER_PRIVATE_KEY") && !isSet("ARBITER_ADDRESS")) problems.push(NO_ARBITER);
  if (isSet("FACILITATOR_AUTH") && !isSet("FACILITATOR_URL")) problems.push(AUTH_ALONE);
  if (env?.RETIRED_SIGNING_KEYS.includes(env.SIGNING_KEY)) problems.push(PRIVATE_KEY_RETIRED);
  const { telemetry, problems: untold } = telemetrySettings(environment);
  problems.push(...[policyProblem(env)].filter((problem) => problem !== null), ...untold);
  if (env !== undefined) problems.push(...accountKeyProblems(env), ...roleProblems(env));
  if (env === undefined || problems.length > 0) return { problem: problems.join("\n") };
  const [facilitatorKey, arbiterKey, examKey] = [
    accountKeyOf("FACILITATOR", env),
    accountKeyOf("ARBITER", env),
    accountKeyOf("EXAM", env),
  ];
  if (arbiterKey === null) return { problem: NO_ARBITER };
  return settingsOf(env, { facilitatorKey, arbiterKey, examKey, telemetry });
}

interface Given {
  readonly facilitatorKey: AccountKey | null;
  readonly arbiterKey: AccountKey;
  readonly examKey: AccountKey | null;
  readonly telemetry: TelemetrySettings | null;
}

type Facilitator =
  | { readonly remote: string; readonly auth?: FacilitatorAuth | undefined }
  | { readonly key: AccountKey };

function settingsOf(env: Variables, { facilitatorKey, arbiterKey, examKey, telemetry }: Given) {
  const baseUrl = env.BASE_URL ?? `http://localhost:${env.PORT}`;
  const facilitator: Facilitator =
    facilitatorKey === null
      ? { remote: env.FACILITATOR_URL ?? "", auth: env.FACILITATOR_AUTH }
      : { key: facilitatorKey };
  const lookUpUrls: readonly string[] = env.LOOKUP_RPC_URLS ?? env[NETWORKS[MAIN_NETWORK].rpcVariable];
  const securityContact = env.SECURITY_CONTACT ?? `mailto:security@${new URL(baseUrl).hostname}`;
  return {
    port: env.PORT,
    /** The address to listen on; `localhost` means both loopbacks, undefined means every address. */
    host: env.HOST,
    /** The service's public address, with which all its URLs start. No trailing slash. */
    baseUrl,
    /** Former public hosts. Documents that name them stay verifiable there. */
    formerHosts: env.FORMER_HOSTS.filter((host) => host !== new URL(baseUrl).host),
    databaseUrl: env.DATABASE_URL,
    /** In order of preference. */
    rpcUrls: eachNetwork<string | readonly string[]>((network) => env[NETWORKS[network].rpcVariable]),
    /** The nodes of the score's look-ups, and the requests allowed per hour, for one client and in total. */
    lookUps: {
      rpcUrls: lookUpUrls,
      perSecond: env.LOOKUPS_PER_SECOND,
      perClient: env.LOOKUPS_PER_CLIENT,
      perHour: env.LOOKUPS_PER_HOUR,
    },
    /** Addresses of the service in addition to those given by other settings, as the indexer knows them. */
    ownAddresses: env.OWN_ADDRESSES,
    /** The most blocks in one `eth_getLogs`. */
    logBlockRange: env.LOG_BLOCK_RANGE,
    /** The most JSON-RPC calls in one request; 1 for no batches. */
    rpcBatch: env.RPC_BATCH,
    payTo: env.PAY_TO_ADDRESS,
    facilitator,
    /**
     * The maximum cost of a settlement as a share of its price, with the assumed price of ETH in US dollars; null for no
     * limit.
     */
    costCeiling:
      env.SETTLEMENT_COST_PERCENT === 0 ? null : { percent: env.SETTLEMENT_COST_PERCENT, ethUsd: env.ETH_PRICE_USD },
    /** The limits of settling payments in one transaction. */
    batches: { most: env.BATCH_MAX, waitMs: env.BATCH_WAIT_MS },
    /** The gas that failed payments may cost each account on Base per day, in wei. */
    failedGasWei: (BigInt(env.FAILED_GAS_USD_PER_DAY) * 10n ** 18n) / BigInt(env.ETH_PRICE_USD),
    signingKey: secretOf(env.SIGNING_KEY),
    /** `x` of every public key that signed before `signingKey`; they stay published permanently. */
    retiredSigningKeys: env.RETIRED_SIGNING_KEYS,
    log: logSettings(env),
    sealingKey: secretOf(env.SEALING_KEY),
    /** Retired keys, which open earlier data and are not used for new data. */
    retiredSealingKeys: env.RETIRED_SEALING_KEYS.map(secretOf),
    decoySeed: secretOf(env.DECOY_SEED),
    /** Escrows and operators on Base, the current one of each kind first; empty if there are none. */
    escrowAddresses: env.ESCROW_ADDRESSES,
    /** The evaluator contract, which turns verdicts into decisions on ERC-8183 jobs; null if there is none. */
    evaluatorAddress: env.EVALUATOR_ADDRESS ?? null,
    /** The factories that may deploy a payer's wallet while its payment is held, on the arbiter's gas. */
    walletFactories: env.ERC6492_FACTORIES,
    escrowLimits: {
      minimum: BigInt(env.ESCROW_MINIMUM),
      payerGas: BigInt(env.ESCROW_PAYER_GAS),
      keeperGas: BigInt(env.ESCROW_KEEPER_GAS),
    },
    /** The registries of ERC-8004 on Base, and the daily limit on gas for publications; null if there are none. */
    erc8004:
      env.ERC8004_FEEDBACK === "off"
        ? null
        : {
            identity: env.ERC8004_IDENTITY,
            reputation: env.ERC8004_REPUTATION,
            validation: env.ERC8004_VALIDATION ?? null,
            gasPerDay: BigInt(env.ERC8004_DAILY_GAS),
          },
    /** The account that pays in exams of sellers, and its limit per 24 hours, in atomic USDC; null if none are sold. */
    exams: examKey === null ? null : { key: examKey, daily: BigInt(env.EXAM_DAILY_SPEND) },
    /** Signs the data that contracts verify: the escrow's outcomes and the attestations of verdicts. */
    arbiterKey,
    /** Origins from which deliveries may be fetched although they are not public. */
    arbiterAllowedOrigins: env.ARBITER_ALLOWED_ORIGINS,
    github: { apiUrl: env.GITHUB_API_URL, token: env.GITHUB_TOKEN ?? null },
    /** A URI, published in `security.txt`. */
    securityContact,
    /** A URI for reports of abuse and requests about privacy. */
    abuseContact: env.ABUSE_CONTACT ?? securityContact,
    /** The operator's name, for the terms and the privacy page. */
    operator: env.OPERATOR ?? new URL(baseUrl).hostname,
    indexViewsSchema: env.INDEX_VIEWS_SCHEMA,
    /** Requests per minute per client address; 0 turns the limit off. */
    rateLimitPerMinute: env.RATE_LIMIT_PER_MINUTE,
    /** Addresses and ranges (CIDR) of reverse proxies whose forwarding headers and `X-Request-Id` are trusted. */
    trustedProxies: env.TRUSTED_PROXIES,
    /** Null without an OpenTelemetry collector. */
    telemetry,
    /** A separate port for metrics only; null to disable it. */
    metrics: env.METRICS_PORT === undefined ? null : { port: env.METRICS_PORT, host: env.METRICS_HOST },
    /** How long a shutdown keeps accepting connections, so that a load balancer notices. */
    drainSeconds: env.DRAIN_SECONDS ?? (isLoopback(new URL(baseUrl).hostname) ? 0 : DRAIN_SECONDS),
    /** How long it may then take before it cuts off pending requests. */
    stopWithinSeconds: env.STOP_WITHIN_SECONDS,
    logLevel: env.LOG_LEVEL,
  };
}

const secretOf = (text: string): Uint8Array => Buffer.from(text, "base64url");

/** Long enough for a load balancer that reads `/ready` every second or two. */
const DRAIN_SECONDS = 5;

const ONE_FACILITATOR =
  "Set exactly one of FACILITATOR_URL (a remote x402 facilitator) and FACILITATOR_PRIVATE_KEY, or FACILITATOR_ADDRESS with SIGNER_URL (the in-process one).";

const NO_ARBITER =
  "ARBITER_PRIVATE_KEY is missing: expected the arbiter's private key, 0x and 64 hex digits, or ARBITER_ADDRESS with SIGNER_URL in its place.";

const AUTH_ALONE = "FACILITATOR_AUTH logs in to a remote facilitator: set FACILITATOR_URL too, or leave it out.";

const PRIVATE_KEY_RETIRED =
  "RETIRED_SIGNING_KEYS is wrong: one of its values is SIGNING_KEY, which is private and would be published; expected x from /.well-known/jwks.json.";
