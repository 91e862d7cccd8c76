import { fileURLToPath } from "node:url";
import pg from "pg";
import { trustNearModules } from "../indexer/near-modules.ts";

const FOLDER = fileURLToPath(new URL("../api/adapters/postgres/migrations", import.meta.url));
/** Any number: concurrent migrations of one database use it to wait for each other. */
const LOCK = 7_402_402;

const LOCKED_WITHIN = "10s";

/** Brings the database to the latest schema; needs the role that owns it. Running it again changes nothing. */
export async function migrate(ownerUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: ownerUrl, keepAlive: true, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await client.query("SELECT pg_advisory_lock($1)", [LOCK]);
    // What waits for a table keeps everybody else waiting behind it.
    await client.query(`SET lock_timeout = '${LOCKED_WITHIN}'`);
    const { drizzle, applyMigrations } = await loadDrizzle();
    await applyMigrations(drizzle(client), { migrationsFolder: FOLDER, migrationsSchema: "migrations" });
  } finally {
    await client.end();
  }
}

/** At its time, and with Drizzle's 106 files found at once: otherwise it is a third of what a start of the service loads. */
async function loadDrizzle() {
  trustNearModules();
  const [{ drizzle }, { migrate: applyMigrations }] = await Promise.all([
    import("drizzle-orm/node-postgres"),
    import("drizzle-orm/node-postgres/migrator"),
  ]);
  return { drizzle, applyMigrations };
}

if (import.meta.main) {
  const url = process.env.DATABASE_URL;
  if (url === undefined || !/^postgres(ql)?:\/\//.test(url)) {
    console.error(
      "DATABASE_URL is missing or wrong: a PostgreSQL URL of the role that owns the database, like postgres://owner:secret@localhost:5432/trust",
    );
    process.exit(1);
  }
  await migrate(url);
  console.log("The database schema is up to date.");
}
