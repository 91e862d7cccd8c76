import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate as applyMigrations } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";

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
    await applyMigrations(drizzle(client), { migrationsFolder: FOLDER, migrationsSchema: "migrations" });
  } finally {
    await client.end();
  }
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
