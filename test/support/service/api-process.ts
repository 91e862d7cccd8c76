import { privateKeyToAccount } from "viem/accounts";
import { inject } from "vitest";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { holdToItsWord, letGo } from "../openapi/answers.ts";
import { ARBITER_KEY, PAY_TO } from "./accounts.ts";
import type { TestDatabase } from "./database.ts";
import { bareEnvironment } from "./environment.ts";

const RELAYER_KEY = `0x${"6f".repeat(32)}` as const;
const START_LIMIT_MS = 60_000;
const START_ATTEMPTS = 3;

export interface ApiProcessPlan {
  readonly database: TestDatabase;
  readonly baseRpcUrl: string;
  readonly baseSepoliaRpcUrl: string;
  /** Additional or replacement environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** A program in place of the run's bundle of `api/main.ts`. */
  readonly program?: string;
  /** Where to write everything it prints. */
  readonly logFile?: string;
}

/** The API as in production, in its own process. It never outlives the test that started it. */
export interface ApiProcess {
  readonly url: string;
  readonly pid: number;
  /** The end of what it printed. */
  readonly output: () => string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** SIGKILL: nothing is finished or reported. */
  readonly kill: () => Promise<void>;
  /** Suspends it, unaware, until `thaw`. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  readonly stop: () => Promise<void>;
}

/** Starts `api/main.ts` and waits until it listens. Processes on one database share their keys. */
export async function startApiProcess(plan: ApiProcessPlan): Promise<ApiProcess> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const { logFile, program = inject("programs").api } = plan;
    const child = await startGuarded({
      command: process.execPath,
      args: [program],
      env: environment(plan, port),
      ...(logFile === undefined ? {} : { logFile }),
    });
    const listening = () => child.lastOutput().includes('"msg":"listening"');
    await waitUntil(() => listening() || !child.running(), START_LIMIT_MS);
    const signal = (name: NodeJS.Signals) => {
      if (child.running()) process.kill(child.pid, name);
    };
    const kill = async () => {
      signal("SIGKILL");
      await child.ended;
    };
    if (child.running() && listening()) {
      const url = `http://localhost:${port}`;
      holdToItsWord(url);
      child.ended.then(() => letGo(url));
      return {
        url,
        pid: child.pid,
        output: child.lastOutput,
        ended: child.ended,
        kill,
        freeze: () => signal("SIGSTOP"),
        thaw: () => signal("SIGCONT"),
        stop: () => child.stop(),
      };
    }
    await kill();
    // Another program may take a port that was free a moment ago.
    if (attempt === START_ATTEMPTS || !/cannot be used \(EADDRINUSE\)/.test(child.lastOutput()))
      throw new Error(`The API did not start. ${child.lastOutput().trim()}`);
  }
}

const environment = ({ database, baseRpcUrl, baseSepoliaRpcUrl, env }: ApiProcessPlan, port: number) => ({
  ...bareEnvironment(),
  PORT: String(port),
  HOST: "localhost",
  DATABASE_URL: database.apiUrl,
  BASE_RPC_URL: baseRpcUrl,
  BASE_SEPOLIA_RPC_URL: baseSepoliaRpcUrl,
  FACILITATOR_PRIVATE_KEY: RELAYER_KEY,
  PAY_TO_ADDRESS: PAY_TO,
  SIGNING_KEY: Buffer.alloc(32, 1).toString("base64url"),
  SEALING_KEY: Buffer.alloc(32, 2).toString("base64url"),
  DECOY_SEED: Buffer.alloc(32, 3).toString("base64url"),
  ARBITER_PRIVATE_KEY: ARBITER_KEY,
  RATE_LIMIT_PER_MINUTE: "0",
  ...env,
});

/** The in-process facilitator of every process. */
export const SHARED_RELAYER = privateKeyToAccount(RELAYER_KEY).address;
