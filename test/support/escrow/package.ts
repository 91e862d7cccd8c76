import { execFile } from "node:child_process";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packInto } from "../packages/pack.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const call = promisify(execFile);

/**
 * Makes an empty folder one in which `packages/escrow` is installed from its tarball, as npm does it with a package that has no
 * dependencies. viem, which it needs from its user, is this project's own, so that no registry is asked. Answers where it lies.
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

/** Lets a folder use a package of this project's. */
export async function linkOwn(home: string, name: string): Promise<void> {
  const target = join(home, "node_modules", name);
  await mkdir(join(target, ".."), { recursive: true });
  await symlink(join(ROOT, "node_modules", name), target);
}
