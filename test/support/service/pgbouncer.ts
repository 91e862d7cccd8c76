import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { findPostgres } from "../../../scripts/embedded/postgres-program.ts";
import { waitUntil } from "../wait-until.ts";
import type { TestDatabase } from "./database.ts";
import { librariesIn, unpackDebian } from "./debian.ts";

/** The program and libraries of PgBouncer. */
export interface PgBouncerProgram {
  readonly command: string;
  readonly libraries: string;
}

/** PgBouncer from Debian. A string gives the reason for its absence. */
export function unpackPgBouncer(folder: string): PgBouncerProgram | string {
  const { stdout: listed, error } = spawnSync("apt-cache", ["depends", "--important", "pgbouncer"], {
    encoding: "utf8",
  });
  if (error) return "there is no apt-cache";
  const needed = [...listed.matchAll(/^ {2}Depends: (lib(?:c-ares|event)\S+)$/gm)].map(([, name = ""]) => name);
  const missing = unpackDebian(folder, ["pgbouncer", ...needed]);
  if (missing !== null) return missing;
  const command = join(folder, "usr/sbin/pgbouncer");
  const libraries = librariesIn(folder);
  const version = spawnSync(command, ["--version"], { env: { LD_LIBRARY_PATH: libraries } });
  return version.status === 0 ? { command, libraries } : `it does not run: ${version.stderr}`;
}

/** A certificate for `localhost`, and the private CA that signed it. */
export function createCertificate(folder: string) {
  const file = (name: string) => join(folder, name);
  const openssl = (...args: readonly string[]) => {
    const { status, stderr } = spawnSync("openssl", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`);
  };
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];
  openssl("req", "-x509", ...newKey, file("ca.key"), "-out", file("ca.pem"), "-subj", "/CN=A private CA", "-days", "2");
  openssl("req", ...newKey, file("server.key"), "-out", file("server.csr"), "-subj", "/CN=localhost");
  writeFileSync(file("names"), "subjectAltName=DNS:localhost");
  const signed = ["-CA", file("ca.pem"), "-CAkey", file("ca.key"), "-CAcreateserial", "-extfile", file("names")];
  openssl("x509", "-req", "-in", file("server.csr"), ...signed, "-out", file("server.pem"), "-days", "2");
  return { ca: file("ca.pem"), cert: file("server.pem"), key: file("server.key") };
}

/** PgBouncer in session mode in front of a database. Only its clients' passwords and its certificate are configured. */
export async function startPgBouncer({ command, libraries }: PgBouncerProgram, database: TestDatabase, folder: string) {
  const home = join(folder, "run");
  mkdirSync(home);
  const { ca, cert, key } = createCertificate(home);
  const port = await freePort();
  const users = [database.ownerUrl, database.apiUrl, database.indexerUrl].map((url) => new URL(url));
  const [{ hostname, port: serverPort, pathname }] = users as [URL, URL, URL];
  const passwords = users.map(({ username, password }) => `"${username}" "${decodeURIComponent(password)}"`);
  writeFileSync(join(home, "users"), `${[...new Set(passwords)].join("\n")}\n`);
  writeFileSync(
    join(home, "pgbouncer.ini"),
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = localhost
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${home}/users
pool_mode = session
default_pool_size = 40
client_tls_sslmode = allow
client_tls_cert_file = ${cert}
client_tls_key_file = ${key}
`,
  );
  // PgBouncer does not run as root.
  const { user } = findPostgres(folder);
  chmodSync(folder, 0o711);
  if (user !== undefined)
    for (const path of [home, ...readdirSync(home).map((name) => join(home, name))])
      chownSync(path, user.uid, user.gid);
  const pooler = await startGuarded({
    ...{ command, args: [join(home, "pgbouncer.ini")], env: { LD_LIBRARY_PATH: libraries } },
    ...(user === undefined ? {} : { user }),
  });
  const behind = (url: string) => {
    const own = new URL(url);
    own.host = `localhost:${port}`;
    own.pathname = pathname;
    return own.href;
  };
  const urls = {
    ownerUrl: behind(database.ownerUrl),
    apiUrl: behind(database.apiUrl),
    indexerUrl: behind(database.indexerUrl),
  };
  const answers = () =>
    withClient(urls.ownerUrl, (client) => client.query("select")).then(
      () => true,
      () => false,
    );
  const isUp = await waitUntil(async () => !pooler.running() || (await answers()), 20_000);
  if (!isUp || !pooler.running()) throw new Error(`PgBouncer is not up: ${pooler.lastOutput()}`);
  return { ...urls, ca, stop: () => pooler.stop() };
}
