import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type GuardedProcess, startGuarded } from "../../scripts/embedded/guarded-process.ts";
import { librariesIn, unpackDebian } from "./service/debian.ts";

/** Independent programs for OCI images: umoci unpacks one according to the specification, and runc runs it. */
export interface OciPrograms {
  readonly umoci: string;
  readonly runc: string;
  readonly skopeo: string;
  readonly env: { readonly LD_LIBRARY_PATH: string; readonly PATH: string };
}

/** The programs from Debian. A string gives the reason why they are missing or cannot run containers here. */
export function unpackOciPrograms(folder: string): OciPrograms | string {
  if (process.getuid?.() !== 0) return "only root can start a container here";
  const { stdout: listed, error } = spawnSync("apt-cache", ["depends", "--important", "runc", "skopeo"], {
    encoding: "utf8",
  });
  if (error) return "there is no apt-cache";
  const needed = [...listed.matchAll(/^ {2}Depends: (lib(?!c6)\S+)$/gm)].map(([, name = ""]) => name);
  const missing = unpackDebian(folder, ["runc", "umoci", "skopeo", ...new Set(needed)]);
  if (missing !== null) return missing;
  const program = (path: string) => join(folder, path);
  const libraries = librariesIn(folder);
  const programs = {
    umoci: program("usr/bin/umoci"),
    runc: program("usr/sbin/runc"),
    skopeo: program("usr/bin/skopeo"),
  };
  const env = { LD_LIBRARY_PATH: libraries, PATH: process.env.PATH ?? "" };
  for (const command of Object.values(programs)) {
    const { status, stderr } = spawnSync(command, ["--version"], { env, encoding: "utf8" });
    if (status !== 0) return `${command} does not run: ${stderr}`;
  }
  return { ...programs, env };
}

interface RunPlan {
  /** The bundle that umoci has unpacked. */
  readonly bundle: string;
  /** Unique on this machine. */
  readonly name: string;
  /** Replaces the image's command. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Container {
  readonly process: GuardedProcess;
  /** Reads a file in `/proc/PID` of the container's program. */
  readonly proc: (part: string) => string;
  readonly stop: () => Promise<void>;
}

/** Runs an unpacked image on a read-only root, as the user that it names, in the machine's network. */
export async function runContainer({ runc, env }: OciPrograms, plan: RunPlan): Promise<Container> {
  const { bundle, name, args, env: settings = {} } = plan;
  const config = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8"));
  config.root = { path: join(bundle, "rootfs"), readonly: true };
  config.process.terminal = false;
  config.process.noNewPrivileges = true;
  config.process.capabilities = {};
  const [entry] = config.process.args;
  if (args !== undefined) config.process.args = [entry, ...args];
  config.process.env.push(...Object.entries(settings).map(([key, value]) => `${key}=${value}`));
  config.linux.namespaces = config.linux.namespaces.filter(({ type }: { type: string }) => type !== "network");
  const own = join(bundle, name);
  mkdirSync(own);
  writeFileSync(join(own, "config.json"), JSON.stringify(config));
  const call = (...more: readonly string[]) => ["--root", join(bundle, "state"), ...more];
  const started = await startGuarded({ command: runc, args: call("run", "--bundle", own, name), env: { ...env } });
  const ask = (...more: readonly string[]) => spawnSync(runc, call(...more), { env, encoding: "utf8" });
  return {
    process: started,
    proc: (part) => readFileSync(`/proc/${JSON.parse(ask("state", name).stdout).pid}/${part}`, "utf8"),
    async stop() {
      if (started.running()) ask("kill", name, "TERM");
      await started.ended;
    },
  };
}
