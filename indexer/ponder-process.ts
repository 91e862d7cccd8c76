import { type ChildProcess, spawn } from "node:child_process";
import type { Deployment } from "./deployment.ts";
import { ponderProgram } from "./ponder-program.ts";
import type { IndexerSettings } from "./settings.ts";

/** Ponder allows itself 5 seconds to close. */
const CLOSE_MS = 8_000;

/** One Ponder application: what it makes, and where. */
export interface PonderPlan {
  readonly deployment: Deployment;
  readonly viewsSchema: string;
  /** What the names of its indexes begin with. */
  readonly prefix: string;
  /** The folder with its configuration, tables and handlers. */
  readonly folder: string;
  readonly heapMiB: number;
  readonly port: number;
  /** What its configuration and handlers read, besides what all have. */
  readonly env: Readonly<Record<string, string>>;
}

export function startPonder(settings: IndexerSettings, plan: PonderPlan): ChildProcess {
  const { deployment, folder, heapMiB, port } = plan;
  const flags = ["--root", folder, "--schema", deployment.schema];
  const output = ["--hostname", "127.0.0.1", "--log-format", "json", "--log-level", settings.ponderLogLevel];
  const env = {
    ...process.env,
    // Ponder prefers PORT, which is the API's, over its own flag.
    PORT: String(port),
    // An index may get new addresses. What else would make another one of it is in its name, and in columns.json.
    PONDER_EXPERIMENTAL_DB: "platform",
    DATABASE_URL: settings.databaseUrl,
    BASE_RPC_URL: Array.from({ length: settings.rpcCopies }, () => settings.rpcUrl).join(","),
    BASE_WS_URL: settings.websocketUrl ?? "",
    ESCROW_ADDRESSES: settings.escrows.join(","),
    OPERATORS: settings.operators.map(({ address, collector }) => `${address}=${collector}`).join(","),
    INDEX_SCHEMA: deployment.schema,
    POLL_MS: String(settings.pollMs),
    ...plan.env,
  };
  // Ponder's use of pg makes Node print a deprecation warning at every start.
  const node = [`--max-old-space-size=${heapMiB}`, "--disable-warning=DeprecationWarning"];
  return spawn(process.execPath, [...node, ...ponderProgram(), "start", ...flags, ...output], {
    env,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

export function closePonder(ponder: ChildProcess): void {
  ponder.kill("SIGTERM");
  setTimeout(() => ponder.kill("SIGKILL"), CLOSE_MS).unref();
}
