import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { bareEnvironment } from "../service/environment.ts";
import type { TestService } from "../service/service.ts";

const COMMAND = fileURLToPath(new URL("../../../scripts/arbiter-correct.ts", import.meta.url));

/** How a command ended, and what it printed. */
export interface Ended {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** `npm run arbiter:correct` with these arguments and exactly this environment. */
export const correct = (env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const options = { env: { ...bareEnvironment(), ...env } };
    execFile(process.execPath, [COMMAND, ...args], options, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });

/** The environment that a service under test would have as a process. */
export function environmentOf({ config }: Pick<TestService, "config">): Record<string, string> {
  const base64url = (key: Uint8Array) => Buffer.from(key).toString("base64url");
  return {
    DATABASE_URL: config.databaseUrl,
    BASE_URL: config.baseUrl,
    BASE_RPC_URL: String(config.rpcUrls["eip155:8453"]),
    BASE_SEPOLIA_RPC_URL: String(config.rpcUrls["eip155:84532"]),
    FACILITATOR_URL: "http://127.0.0.1:1",
    PAY_TO_ADDRESS: config.payTo,
    SIGNING_KEY: base64url(config.signingKey),
    SEALING_KEY: base64url(config.sealingKey),
    DECOY_SEED: base64url(config.decoySeed),
    ARBITER_PRIVATE_KEY: config.arbiterKey,
    ARBITER_ALLOWED_ORIGINS: config.arbiterAllowedOrigins.join(","),
    GITHUB_API_URL: config.github.apiUrl,
  };
}
