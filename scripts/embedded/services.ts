import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Address } from "viem";
import { NETWORKS } from "../../api/platform/networks.ts";
import type { ProcessPlan } from "./guarded-process.ts";
import { arbiterAddress, demoMerchantAddress, examAddress, type Keys, payToAddress } from "./keys.ts";
import type { StartSettings } from "./settings.ts";

export interface ServiceParts {
  readonly settings: StartSettings;
  readonly keys: Keys;
  readonly apiUrl: string;
  readonly indexerUrl: string;
  readonly logs: string;
  /** The escrow contract and the operator on the local Base. */
  readonly escrows?: readonly Address[];
  /** The vkey and URL of the local witness. */
  readonly witness?: string;
  /** The contract on the local Base that turns verdicts into decisions on jobs. */
  readonly evaluator?: Address;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const VIEWS_SCHEMA = "live";

/** The API, as in production. */
export const apiPlan = (parts: ServiceParts): ProcessPlan => ({
  ...program("api/main.ts", parts.logs, "api.log"),
  env: {
    ...process.env,
    ...chains(parts.settings),
    HOST: process.env.HOST || "localhost",
    PORT: String(parts.settings.port),
    BASE_URL: "",
    DATABASE_URL: parts.apiUrl,
    FACILITATOR_URL: "",
    FACILITATOR_PRIVATE_KEY: parts.keys.facilitatorPrivateKey,
    PAY_TO_ADDRESS: payToAddress(parts.keys),
    SIGNING_KEY: parts.keys.signingKey,
    SEALING_KEY: parts.keys.sealingKey,
    DECOY_SEED: parts.keys.decoySeed,
    ESCROW_ADDRESSES: parts.escrows?.join(",") ?? "",
    EVALUATOR_ADDRESS: parts.evaluator ?? "",
    // The keys are set here, and these variables of the environment belong to another installation.
    ...{ SIGNER_URL: "", FACILITATOR_ADDRESS: "", ARBITER_ADDRESS: "", EXAM_ADDRESS: "" },
    ARBITER_PRIVATE_KEY: parts.keys.arbiterPrivateKey,
    EXAM_PRIVATE_KEY: parts.keys.examPrivateKey,
    LOG_WITNESSES: process.env.LOG_WITNESSES || (parts.witness ?? ""),
    // Short, so that a developer soon sees an anchor.
    LOG_ANCHOR_SECONDS: process.env.LOG_ANCHOR_SECONDS || "600",
    INDEX_VIEWS_SCHEMA: VIEWS_SCHEMA,
    RATE_LIMIT_PER_MINUTE: "0",
  },
});

/** The indexer. It polls a local chain, which is free to query. */
export const indexerPlan = (parts: ServiceParts, ponderPort: number): ProcessPlan => ({
  ...program("scripts/indexer.ts", parts.logs, "indexer.log"),
  env: {
    ...process.env,
    ...chains(parts.settings),
    PONDER_WS_URL_8453: "",
    DATABASE_URL: parts.indexerUrl,
    PAY_TO_ADDRESS: payToAddress(parts.keys),
    OWN_ADDRESSES: [demoMerchantAddress(parts.keys), examAddress(parts.keys)].join(","),
    ESCROW_ADDRESSES: parts.escrows?.join(",") ?? "",
    ESCROW_START_BLOCK: "",
    START_BLOCK: "",
    // A local chain is small, and full scope needs no look-ups.
    INDEX_SCOPE: "full",
    INDEX_VIEWS_SCHEMA: VIEWS_SCHEMA,
    INDEX_HEAP_MIB: "384",
    RPC_COPIES: "25",
    POLL_MS: "250",
    PONDER_PORT: String(ponderPort),
  },
});

/** Hardhat and Ignition have a separate process, because they need a lot of memory for a few seconds. */
export const deploymentPlan = (parts: Pick<ServiceParts, "settings" | "keys" | "logs">): ProcessPlan => ({
  ...program("scripts/embedded/deploy-contracts.ts", parts.logs, "deploy.log"),
  args: [join(ROOT, "scripts/embedded/deploy-contracts.ts"), join(parts.settings.dataDirectory, "ignition")],
  env: {
    ...process.env,
    BASE_RPC_PORT: String(parts.settings.rpcPorts["eip155:8453"]),
    BASE_SEPOLIA_RPC_PORT: String(parts.settings.rpcPorts["eip155:84532"]),
    ARBITER_ADDRESS: arbiterAddress(parts.keys),
    FEE_RECIPIENT_ADDRESS: payToAddress(parts.keys),
  },
});

/** Returns the plan of one of our programs, with its output in a file. */
export const program = (path: string, logs: string, logFile: string) => ({
  command: process.execPath,
  args: ["--max-old-space-size=256", join(ROOT, path)],
  cwd: ROOT,
  logFile: join(logs, logFile),
});

const chains = ({ rpcPorts }: StartSettings) =>
  Object.fromEntries(
    Object.values(NETWORKS).map(({ id, rpcVariable }) => [rpcVariable, `http://127.0.0.1:${rpcPorts[id]}`]),
  );
