import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { readDatabaseUrl } from "../api/platform/config/environment.ts";
import { releaseProblem } from "../api/platform/db/connection.ts";

/** The schema of the first release: the `schema.sql` files of `api/`, each after the ones that it needs. */
const BASELINE = [
  "platform/db",
  "log",
  "payments",
  "platform/relayer",
  "certificates",
  "sellers",
  "score",
  "settlement-status",
  "arbiter",
  "escrow",
  "purchases",
  "cafe",
  "operations",
  "board",
];

/** Changes since the first release, oldest first, as files in `scripts/migrations/`. A released file never changes. */
const LATER: readonly string[] = [];

/** An arbitrary number. Concurrent migrations of a database use this lock to wait for each other. */
const LOCK = 7_402_402;

/** A statement that waits for a table lock blocks every later query of that table. */
const LOCKED_WITHIN = "10s";

const RECORDS = `CREATE SCHEMA IF NOT EXISTS migrations;
  CREATE TABLE IF NOT EXISTS migrations.applied (
    name text PRIMARY KEY,
    sha256 bytea NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
  );
  COMMENT ON TABLE migrations.applied IS 'Migrations that have run.';
  COMMENT ON COLUMN migrations.applied.sha256 IS 'SHA-256 of the migration''s SQL'`;

const UNRELEASED =
  "A database of an unreleased version cannot be upgraded: start with an empty one (npm start: remove its data directory, DATA_DIR).";

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

const read = (path: string): string => readFileSync(new URL(`../${path}.sql`, import.meta.url), "utf8");

export const migrations = (): readonly Migration[] => [
  { name: "baseline", sql: BASELINE.map((name) => read(`api/${name}/schema`)).join("\n") },
  ...LATER.map((name) => ({ name, sql: read(`scripts/migrations/${name}`) })),
];

/** Migrates the database to the latest schema, with the role that owns it. Running it again has no effect. */
export async function migrate(ownerUrl: string, all = migrations()): Promise<void> {
  const client = new pg.Client({ connectionString: ownerUrl, keepAlive: true, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const old = await releaseProblem(client);
    if (old !== null) throw new Error(old);
    const lacking = await missingRights(client);
    if (lacking !== null) throw new Error(lacking);
    await client.query("SELECT pg_advisory_lock($1)", [LOCK]);
    await client.query(`SET lock_timeout = '${LOCKED_WITHIN}'; ${RECORDS}`);
    const applied = await readApplied(client);
    for (const migration of all) await apply(client, migration, applied.get(migration.name) ?? null);
  } finally {
    await client.end();
  }
}

interface Rights {
  readonly owner: string;
  readonly database: string;
  /** The missing roles that it may not create. */
  readonly roles: readonly string[];
  readonly schemas: boolean;
  readonly tables: boolean;
}

const RIGHTS = `SELECT current_user AS owner, current_database() AS database,
  ARRAY(SELECT name FROM unnest(ARRAY['trust_api', 'trust_indexer']) AS name WHERE to_regrole(name) IS NULL
    AND NOT (SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user)) AS roles,
  has_database_privilege(current_database(), 'CREATE WITH GRANT OPTION') AS schemas,
  has_schema_privilege('public', 'CREATE') AS tables`;

/** Returns the message with the statements that an administrator must run first, or null if this role has the rights. */
async function missingRights(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<Rights>(RIGHTS);
  const [found] = rows;
  if (found === undefined) throw new Error("PostgreSQL did not return the rights.");
  const [owner, database] = [found.owner, found.database].map((name) => client.escapeIdentifier(name));
  const statements = [
    ...found.roles.map((role) => `CREATE ROLE ${role} NOLOGIN;`),
    ...(found.schemas ? [] : [`GRANT CREATE ON DATABASE ${database} TO ${owner} WITH GRANT OPTION;`]),
    ...(found.tables ? [] : [`GRANT CREATE ON SCHEMA public TO ${owner};`]),
  ];
  if (statements.length === 0) return null;
  return `The role ${owner} lacks rights. Nothing was changed. Have an administrator run this in the database ${database}, then run the migration again:\n\n${statements.map((text) => `  ${text}\n`).join("")}`;
}

/** Returns the SHA-256 of each migration that has run, by name. */
async function readApplied(client: pg.Client): Promise<ReadonlyMap<string, Buffer>> {
  const { rows } = await client.query<{ name: string; sha256: Buffer }>("SELECT name, sha256 FROM migrations.applied");
  const { rowCount: used } = await client.query("SELECT WHERE to_regclass('payment') IS NOT NULL");
  if (rows.length === 0 && used !== 0)
    throw new Error(`The database has tables, but no record of migrations. ${UNRELEASED}`);
  return new Map(rows.map(({ name, sha256 }) => [name, sha256]));
}

async function apply(client: pg.Client, { name, sql }: Migration, applied: Buffer | null): Promise<void> {
  const sha256 = createHash("sha256").update(sql).digest();
  if (applied?.equals(sha256)) return;
  if (applied !== null)
    throw new Error(
      `The migration "${name}" has changed since it ran on this database. Put changes to a released schema in a new migration. ${UNRELEASED}`,
    );
  await client.query("BEGIN");
  try {
    await client.query(sql);
    await client.query("INSERT INTO migrations.applied (name, sha256) VALUES ($1, $2)", [name, sha256]);
    await client.query("COMMIT");
  } catch (cause) {
    throw new Error(`The migration "${name}" failed and changed nothing: ${(cause as Error).message}`, { cause });
  }
}

const OWNER_URL =
  "a PostgreSQL URL of the role that owns the database, like postgres://owner:secret@localhost:5432/trust";

if (import.meta.main) {
  const database = readDatabaseUrl(OWNER_URL, process.env);
  if ("problem" in database) {
    console.error(database.problem);
    process.exit(1);
  }
  try {
    await migrate(database.url);
    console.log("The database schema is up to date.");
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}
