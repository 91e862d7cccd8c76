import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Unpacks Debian packages into a folder without installing them. Returns null, or the reason for a failure. */
export function unpackDebian(folder: string, names: readonly string[]): null | string {
  mkdirSync(folder, { recursive: true });
  const apt = (program: string, args: readonly string[]) =>
    spawnSync(program, args, { cwd: folder, encoding: "utf8", timeout: 300_000 });
  const { status, stderr, error } = apt("apt-get", ["download", ...names]);
  if (error) return "there is no apt-get";
  if (status !== 0) return `apt-get download fails: ${stderr.trim().split("\n").at(-1)}`;
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".deb"))) apt("dpkg", ["-x", name, "."]);
  return null;
}

/** The folders of the unpacked libraries, for `LD_LIBRARY_PATH`. */
export function librariesIn(folder: string): string {
  const homes = ["lib", "usr/lib"].map((home) => join(folder, home)).filter((home) => existsSync(home));
  return homes.flatMap((home) => readdirSync(home).map((name) => join(home, name))).join(":");
}
