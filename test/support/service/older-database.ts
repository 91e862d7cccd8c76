import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { createDatabase, type TestDatabase } from "./database.ts";

const MIGRATIONS = fileURLToPath(new URL("../../../api/adapters/postgres/migrations", import.meta.url));

/** A database whose last migration is this one, and nothing is in it: an installation of an older release. */
export async function olderDatabase(lastMigration: string): Promise<TestDatabase> {
  const database = await createDatabase();
  await migrateUntil(database.ownerUrl, lastMigration);
  return database;
}

async function migrateUntil(ownerUrl: string, last: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "migrations-"));
  try {
    cpSync(MIGRATIONS, folder, { recursive: true });
    const journal = join(folder, "meta", "_journal.json");
    const { entries, ...rest } = JSON.parse(readFileSync(journal, "utf8")) as { entries: { tag: string }[] };
    const known = entries.slice(0, entries.findIndex(({ tag }) => tag === last) + 1);
    writeFileSync(journal, JSON.stringify({ ...rest, entries: known }));
    await withClient(ownerUrl, (client) =>
      migrate(drizzle(client), { migrationsFolder: folder, migrationsSchema: "migrations" }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
