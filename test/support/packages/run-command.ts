import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { vi } from "vitest";
import { monitorLog } from "../../../packages/verifier/src/commands/log-monitor.ts";
import { InputError } from "../../../packages/verifier/src/refusal.ts";

/** Runs a command of the verifier in this process. Returns its exit code, and its output or its error message. */
export async function runCommand(
  command: () => Promise<number>,
): Promise<{ readonly code: number; readonly text: string }> {
  const printed = vi.spyOn(console, "log").mockReturnValue();
  try {
    const code = await command();
    return { code, text: printed.mock.calls.map(([line]) => `${line}\n`).join("") };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { code: 2, text: error.message };
  } finally {
    printed.mockRestore();
  }
}

/**
 * Returns a function that monitors a service's log at any location, with the policy and keys that the service
 * publishes.
 */
export async function followerOf(serviceUrl: string, folder: string) {
  const [policy, jwks] = [join(folder, "policy.txt"), join(folder, "jwks.json")];
  const log = (await (await fetch(`${serviceUrl}/log`)).json()) as { policy: string };
  await writeFile(policy, log.policy);
  await writeFile(jwks, await (await fetch(`${serviceUrl}/.well-known/jwks.json`)).text());
  const issuer = `did:web:${new URL(serviceUrl).host.replace(":", "%3A")}`;
  /** Runs `log monitor` once from its stored state. Returns its exit code and its output. */
  return async (place: string, state: string): Promise<{ readonly code: number; readonly text: string }> => {
    const trust = ["--policy", policy, "--jwks", jwks, "--issuer", issuer];
    return runCommand(() => monitorLog([place, "--state", join(folder, state), "--once", ...trust]));
  };
}
