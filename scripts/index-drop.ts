import pg from "pg";
import { dropIndexes } from "../indexer/choose-index.ts";
import { isBusy } from "../indexer/schemas.ts";
import { parseSettings } from "../indexer/settings.ts";

/** Drops all indexes in this database. Configured like the indexer, which must not be running. */
try {
  const settings = parseSettings(process.env);
  if ("problem" in settings) throw new Error(settings.problem);
  const db = new pg.Pool({ connectionString: settings.databaseUrl, max: 1, application_name: "index_drop" });
  db.on("error", () => undefined);
  const dropped = await dropIndexes(db).finally(() => db.end());
  console.log(`Dropped: ${dropped.join(", ")}. The indexer creates a new index at its next start.`);
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(
    `The index was not dropped. ${isBusy(error) ? "A long-running transaction is reading it. Try again." : why}`,
  );
  process.exitCode = 1;
}
