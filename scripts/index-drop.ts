import pg from "pg";
import { dropIndexes } from "../indexer/drop.ts";
import { isBusy } from "../indexer/schemas.ts";
import { parseSettings } from "../indexer/settings.ts";

/** Drops what the indexer has made in this database. Configured like the indexer, which must not be running. */
async function drop(databaseUrl: string): Promise<string> {
  const db = new pg.Pool({ connectionString: databaseUrl, max: 1, application_name: "index_drop" });
  db.on("error", () => undefined);
  try {
    const dropped = await dropIndexes(db).catch((error: unknown) => {
      throw isBusy(error) ? new Error("A transaction that does not end reads it. Try again.") : error;
    });
    return `Dropped: ${dropped.join(", ")}. The indexer makes a new index at its next start.`;
  } finally {
    await db.end();
  }
}

const settings = parseSettings(process.env);
try {
  if ("problem" in settings) throw new Error(settings.problem);
  console.log(await drop(settings.databaseUrl));
} catch (error) {
  console.error(`The index was not dropped. ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
