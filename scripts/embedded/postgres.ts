import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import pg from "pg";
import { type GuardedProcess, type ProcessPlan, startGuarded } from "./guarded-process.ts";
import { isPortFree } from "./ports.ts";
import { findPostgres, type PostgresProgram } from "./postgres-program.ts";
import { replaceFile } from "./replace-file.ts";
import { waitUntil } from "./wait-until.ts";

export interface Postgres {
  /** The superuser's URL, for migrations. */
  readonly ownerUrl: string;
  /** The URL of the API's login role `trust_service`. `grantRoles` gives it rights. */
  readonly apiUrl: string;
  /** The URL of the indexer's login role `trust_index`. `grantRoles` gives it rights. */
  readonly indexerUrl: string;
  readonly process: GuardedProcess;
  readonly stop: () => Promise<void>;
}

export interface PostgresPlan {
  readonly directory: string;
  readonly port: number;
  /** Defaults to `postgres.log` in the directory. */
  readonly logFile?: string;
  /** Additional `postgres` settings, such as `fsync=off`. */
  readonly settings?: readonly string[];
}

interface Passwords {
  readonly owner: string;
  readonly service: string;
  readonly indexer: string;
}

const OWNER = "postgres";
const SERVICE = "trust_service";
const INDEXER = "trust_index";
const DATABASE = "trust";
// Small, because the whole embedded stack shares 1 GiB. It uses only TCP, so that two users' sockets do not collide in /tmp.
const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "shared_buffers=64MB",
  "max_connections=80",
  "wal_level=minimal",
  "max_wal_senders=0",
  "log_min_messages=warning",
];

const INITDB_FLAGS = [
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--locale=C",
  "--no-sync",
  "--no-instructions",
];

/** Starts PostgreSQL in the directory, initializing it on first use. */
export async function startPostgres({ directory, port, ...options }: PostgresPlan): Promise<Postgres> {
  const home = resolve(directory);
  mkdirSync(home, { recursive: true, mode: 0o755 });
  const cluster = join(home, "cluster");
  const passwords = readPasswords(home);
  const program = findPostgres(home);
  const isNew = !existsSync(cluster);
  if (isNew) await initialize(program, home, passwords);
  const logFile = options.logFile ?? join(home, "postgres.log");
  const flags = [...SETTINGS, ...(options.settings ?? [])].flatMap((setting) => ["-c", setting]);
  const server = await launch(program, ["-D", cluster, "-p", String(port), ...flags], logFile);
  const urls = urlsOf(passwords, port);
  try {
    await whenAnswering(server, urls.ownerUrl);
    if (isNew) await createDatabase(urls.ownerUrl, passwords);
  } catch (cause) {
    await server.stop();
    throw cause;
  }
  return { ...urls, process: server, stop: () => server.stop() };
}

type Urls = Pick<Postgres, "ownerUrl" | "apiUrl" | "indexerUrl">;

function urlsOf({ owner, service, indexer }: Passwords, port: number): Urls {
  const url = (user: string, password: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${DATABASE}`;
  return { ownerUrl: url(OWNER, owner), apiUrl: url(SERVICE, service), indexerUrl: url(INDEXER, indexer) };
}

/**
 * Returns the URLs of the server that runs in the directory, or null. Its port is the fourth line of its pid file.
 */
export async function runningPostgres(directory: string): Promise<Urls | null> {
  const home = resolve(directory);
  const file = join(home, "cluster", "postmaster.pid");
  if (!existsSync(file)) return null;
  const port = Number(readFileSync(file, "utf8").split("\n")[3]);
  return !port || (await isPortFree(port, "127.0.0.1")) ? null : urlsOf(readPasswords(home), port);
}

/** Lets the login roles act as `trust_api` and `trust_indexer`, the roles without login to which migrations grant rights. */
export const grantRoles = (ownerUrl: string): Promise<void> =>
  withClient(ownerUrl, async (client) => {
    await client.query(`grant trust_api to ${SERVICE}; grant trust_indexer to ${INDEXER}`);
  });

/** Runs `use` on a connection, and closes it. */
export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

function readPasswords(home: string): Passwords {
  const file = join(home, "passwords.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8"));
  const password = () => randomBytes(24).toString("base64url");
  const fresh = { owner: password(), service: password(), indexer: password() };
  replaceFile(file, JSON.stringify(fresh), 0o600);
  return fresh;
}

async function initialize(program: PostgresProgram, home: string, passwords: Passwords): Promise<void> {
  const cluster = join(home, "cluster");
  const passwordFile = join(home, "initdb-password");
  mkdirSync(cluster, { mode: 0o700 });
  writeFileSync(passwordFile, passwords.owner, { mode: 0o600 });
  if (program.user !== undefined) {
    for (const path of [cluster, passwordFile]) chownSync(path, program.user.uid, program.user.gid);
  }
  const args = [`--pgdata=${cluster}`, `--username=${OWNER}`, `--pwfile=${passwordFile}`, ...INITDB_FLAGS];
  const initdb = await startGuarded(asPostgres(program, program.initdb, args));
  const outcome = await initdb.ended;
  rmSync(passwordFile, { force: true });
  if (outcome === 0) return;
  rmSync(cluster, { recursive: true, force: true });
  throw new Error(`PostgreSQL could not be initialized in ${cluster}.
${initdb.lastOutput().trim()}`);
}

async function launch(program: PostgresProgram, args: readonly string[], logFile: string): Promise<GuardedProcess> {
  const plan = asPostgres(program, program.postgres, args);
  // SIGKILL would leave its shared memory behind.
  const server = await startGuarded({ ...plan, stopSignal: "SIGINT", orphanSignal: "SIGQUIT", logFile });
  chmodSync(logFile, 0o600);
  return server;
}

function asPostgres({ wrap, user }: PostgresProgram, command: string, args: readonly string[]): ProcessPlan {
  const [wrapper, ...wrapping] = wrap;
  if (wrapper !== undefined) return { command: wrapper, args: [...wrapping, command, ...args] };
  return { command, args, ...(user === undefined ? {} : { user }) };
}

async function whenAnswering(server: GuardedProcess, ownerUrl: string): Promise<void> {
  const url = ownerUrl.replace(/[^/]+$/, "postgres");
  const answers = () => withClient(url, async (client) => (await client.query("select 1")).rowCount === 1);
  await waitUntil(async () => !server.running() || (await answers()), 60_000);
  if (!server.running())
    throw new Error(`PostgreSQL did not start.
${server.lastOutput().trim()}`);
}

async function createDatabase(ownerUrl: string, { service, indexer }: Passwords): Promise<void> {
  await withClient(ownerUrl.replace(/[^/]+$/, "postgres"), async (client) => {
    for (const [role, password] of [
      [SERVICE, service],
      [INDEXER, indexer],
    ] as const)
      await client.query(`create role ${role} login password ${client.escapeLiteral(password)}`);
    await client.query(`create database ${DATABASE}`);
  });
}
