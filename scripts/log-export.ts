import { parseArgs } from "node:util";
import { connect, isAway } from "../api/adapters/postgres/connection.ts";
import { createLogStore } from "../api/adapters/postgres/log-store.ts";
import { createLogCheckpoints } from "../api/adapters/postgres/served-checkpoints.ts";
import { createWitnessStore } from "../api/adapters/postgres/witness-store.ts";
import { embeddedEnvironment } from "./embedded/environment.ts";
import { SettingError } from "./embedded/settings.ts";
import { type Exported, exportLogs } from "./log-export/export-log.ts";
import { openFolder } from "./log-export/folder.ts";
import { ExportRefusal } from "./log-export/refusal.ts";
import { type ExportSettings, readExportSettings } from "./log-export/settings.ts";

const USAGE = `Usage: npm run log:export -- <folder>

Writes the transparency log as static files: <folder>/log/checkpoint, <folder>/log/tile/…, and <folder>/log/2/… for a second log.
Run it again for what is new; docs/log-http.md says more. Needs DATABASE_URL and the API's LOG_WITNESSES, LOG_QUORUM and
LOG_WITNESS_WAIT, and no key; or the DATA_DIR and PORT of a running "npm start".
Exits with 1 for a fork, or a database that has lost entries; with 2 if the log cannot be read or written.`;
const SAY_EVERY_MS = 5_000;

/** @throws SettingError */
function readFolder(args: readonly string[]): string {
  try {
    const [folder = "", ...more] = parseArgs({ args: [...args], allowPositionals: true }).positionals;
    if (folder !== "" && more.length === 0) return folder;
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
  throw new SettingError(USAGE);
}

/** @throws SettingError */
async function readSettings(): Promise<ExportSettings> {
  const settings = readExportSettings(process.env.DATABASE_URL ? process.env : await embeddedEnvironment(process.env));
  if ("problem" in settings) throw new SettingError(settings.problem);
  return settings;
}

async function run(path: string, { databaseUrl, policy, nameWitnesses }: ExportSettings): Promise<void> {
  const folder = await openFolder(path);
  const pool = connect(databaseUrl, 4);
  const store = createLogStore(pool);
  const witnesses = createWitnessStore(pool);
  const checkpoints = createLogCheckpoints({ pool, store, witnesses, policy });
  try {
    const newest = (await store.generations()).at(-1)?.generation ?? 1;
    // The service goes on from the largest checkpoint that anybody has shown, witnessed or not.
    if (!nameWitnesses && (await witnesses.list(newest)).length > 0)
      throw new SettingError(
        "LOG_WITNESSES is missing: this log has witnesses. Set it to what the API has, or LOG_QUORUM=0 if they are gone.",
      );
    for (const one of await exportLogs({ store, checkpoints }, folder, progress())) tell(one);
  } finally {
    await folder.close();
    await pool.end();
  }
}

/** A line every few seconds: a long log takes minutes. */
function progress() {
  let said = Date.now();
  return (entry: number, size: number) => {
    if (Date.now() - said < SAY_EVERY_MS) return;
    said = Date.now();
    console.error(`${entry} of ${size} entries`);
  };
}

function tell({ origin, size, added, lost, hasEnded }: Exported): void {
  const kept = lost === 0 ? "" : `; the database has lost the last ${lost} of them, and the folder keeps them`;
  console.log(`${origin}${hasEnded ? ", which has ended," : ""} has ${size} entries, ${added} of them new${kept}`);
}

function codeOf(error: unknown): 1 | 2 {
  if (error instanceof SettingError || error instanceof ExportRefusal) {
    console.error(error.message);
    return error instanceof ExportRefusal ? 1 : 2;
  }
  const { message, code } = error as NodeJS.ErrnoException;
  console.error(`The log ${isAway(error) ? "cannot be read" : "was not exported"}: ${message || code}`);
  return 2;
}

try {
  await run(readFolder(process.argv.slice(2)), await readSettings());
} catch (error) {
  process.exitCode = codeOf(error);
}
