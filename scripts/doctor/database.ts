import { lookup } from "node:dns/promises";
import type pg from "pg";
import { checkDatabase } from "../../api/operations/probes.ts";
import type { Config } from "../../api/platform/config/config.ts";
import { isLoopback } from "../../api/platform/config/values.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { installationProblem } from "../../api/platform/db/installation.ts";
import { addressClass } from "../../api/platform/web/addresses.ts";
import { causeOf, type Finding, fail, note, ok } from "./finding.ts";

const SUBJECT = "DATABASE_URL";
const MOST_SKEW_SECONDS = 2;
/** The settings on which the durability of payments depends. */
const DURABLE = ["fsync", "synchronous_commit", "full_page_writes"] as const;

interface Facts {
  readonly version: string;
  readonly role: string;
  readonly encrypted: boolean;
  readonly now: Date;
  readonly off: readonly string[];
}

const FACTS = `SELECT current_setting('server_version') AS version, current_user AS role, clock_timestamp() AS now,
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS encrypted,
  ARRAY(SELECT name FROM pg_settings WHERE name = ANY($1) AND setting = 'off') AS off`;

/** Inspects the database: version, role, schema, identity, durability, encryption, and clock. */
export async function inspectDatabase(config: Config): Promise<readonly Finding[]> {
  const pool = connect(config.databaseUrl, 1);
  try {
    const problem = await checkDatabase(pool);
    if (problem !== null) return [fail(SUBJECT, problem)];
    const other = await installationProblem(pool, config);
    return [...(other === null ? [] : [fail("installation", other)]), ...(await inspectServer(pool, config))];
  } catch (error) {
    return [fail(SUBJECT, `the database cannot be read: ${causeOf(error)}`)];
  } finally {
    await pool.end();
  }
}

async function inspectServer(pool: pg.Pool, { databaseUrl }: Config): Promise<readonly Finding[]> {
  const asked = Date.now();
  const { rows } = await pool.query<Facts>(FACTS, [DURABLE]);
  const [found] = rows;
  if (found === undefined) return [];
  const { version, role, encrypted, now, off } = found;
  const skew = Math.round((now.getTime() - (asked + Date.now()) / 2) / 1000);
  return [
    ok(SUBJECT, `PostgreSQL ${version}, role ${role}, with a schema${encrypted ? ", encrypted" : ""}`),
    ...(encrypted ? [] : await unencrypted(new URL(databaseUrl).hostname)),
    ...off.map((name) => fail(SUBJECT, `${name} is off: turn it on, or a crash may lose charged payments`)),
    Math.abs(skew) > MOST_SKEW_SECONDS
      ? fail("clock", `differs from the database's by ${skew} seconds: synchronize both machines (NTP)`)
      : ok("clock", "matches the database's"),
  ];
}

async function unencrypted(host: string): Promise<readonly Finding[]> {
  if (host === "" || isLoopback(host)) return [];
  const found = await lookup(host).catch(() => null);
  const isPublic = found !== null && addressClass(found.address) === "public";
  const cure = "add ?sslmode=verify-full&sslrootcert=/path/ca.pem";
  return [
    isPublic
      ? fail(SUBJECT, `the connection to ${host} is public and not encrypted: ${cure}`)
      : note(SUBJECT, `the connection to ${host} is not encrypted; unless the network is private, ${cure}`),
  ];
}
