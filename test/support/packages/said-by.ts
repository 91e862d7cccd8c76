import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { vi } from "vitest";
import { monitorLog } from "../../../packages/verifier/src/commands/log-monitor.ts";
import { InputError } from "../../../packages/verifier/src/refusal.ts";

/** A command of the verifier in this process: its exit code, and what it printed or was refused for. */
export async function saidBy(
  command: () => Promise<number>,
): Promise<{ readonly code: number; readonly text: string }> {
  const said = vi.spyOn(console, "log").mockReturnValue();
  try {
    const code = await command();
    return { code, text: said.mock.calls.map(([line]) => `${line}\n`).join("") };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { code: 2, text: error.message };
  } finally {
    said.mockRestore();
  }
}

/** Follows the log of a service wherever its files are, with the policy and the keys that the service itself shows. */
export async function followerOf(serviceUrl: string, folder: string) {
  const [policy, jwks] = [join(folder, "policy.txt"), join(folder, "jwks.json")];
  const log = (await (await fetch(`${serviceUrl}/log`)).json()) as { policy: string };
  await writeFile(policy, log.policy);
  await writeFile(jwks, await (await fetch(`${serviceUrl}/.well-known/jwks.json`)).text());
  const issuer = `did:web:${new URL(serviceUrl).host.replace(":", "%3A")}`;
  /** One run of `log monitor`, from where the state says: its exit code, and what it printed. */
  return async (place: string, state: string): Promise<{ readonly code: number; readonly text: string }> => {
    const trust = ["--policy", policy, "--jwks", jwks, "--issuer", issuer];
    return saidBy(() => monitorLog([place, "--state", join(folder, state), "--once", ...trust]));
  };
}
