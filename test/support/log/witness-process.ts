import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type GuardedProcess, startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";
import { bareEnvironment } from "../service/environment.ts";

const PROGRAM = fileURLToPath(new URL("../../../scripts/witness.ts", import.meta.url));
const STARTS_WITHIN_MS = 60_000;

/** `npm run witness` on a folder; it can be killed and started again. */
export interface WitnessProcess {
  readonly url: string;
  readonly vkey: string;
  readonly stateFile: string;
  readonly start: () => Promise<void>;
  readonly kill: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function witnessProcess(folder: string, name: string, logs: readonly string[]): Promise<WitnessProcess> {
  const port = await freePort();
  const seed = randomBytes(32);
  const { key } = await noteSigner(name, "witness", seed);
  const stateFile = join(folder, "witness.db");
  const env = {
    ...bareEnvironment(),
    WITNESS_NAME: name,
    WITNESS_KEY: seed.toString("base64url"),
    WITNESS_LOGS: logs.join(","),
    WITNESS_STATE: stateFile,
    WITNESS_PORT: String(port),
  };
  let child: GuardedProcess | null = null;
  return {
    url: `http://127.0.0.1:${port}`,
    vkey: key.vkey,
    stateFile,
    async start() {
      const started = await startGuarded({ command: process.execPath, args: [PROGRAM], env });
      child = started;
      await waitUntil(() => started.lastOutput().includes("listens on") || !started.running(), STARTS_WITHIN_MS, 10);
      if (!started.running()) throw new Error(`The witness did not start. ${started.lastOutput()}`);
    },
    async kill() {
      if (child?.running()) process.kill(child.pid, "SIGKILL");
      await child?.ended;
    },
    stop: async () => child?.stop(),
  };
}
