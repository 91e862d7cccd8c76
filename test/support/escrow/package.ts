import { execFile } from "node:child_process";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packInto } from "../packages/pack.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const call = promisify(execFile);

/**
 * Installs `packages/escrow` from its tarball into an empty folder, as npm does with a package without dependencies.
 * viem, its peer dependency, is this project's own, so that no registry is asked. Returns its location.
 */
export async function installEscrowPackage(home: string): Promise<string> {
  const installed = join(home, "node_modules", "agent-payment-trust-escrow");
  await packInto(home, "escrow");
  const [tarball = ""] = (await readdir(home)).filter((name) => name.endsWith(".tgz"));
  await mkdir(installed, { recursive: true });
  await call("tar", ["-xzf", join(home, tarball), "-C", installed, "--strip-components=1"]);
  await linkOwn(home, "viem");
  await writeFile(join(home, "package.json"), '{"type":"module"}');
  return installed;
}

/** Lets a folder use one of this project's packages. */
export async function linkOwn(home: string, name: string): Promise<void> {
  const target = join(home, "node_modules", name);
  await mkdir(join(target, ".."), { recursive: true });
  await symlink(join(ROOT, "node_modules", name), target);
}
