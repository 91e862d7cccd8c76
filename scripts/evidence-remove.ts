import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { runningPostgres } from "./embedded/postgres.ts";
import { readSettings, SettingError } from "./embedded/settings.ts";

const USAGE = `Usage: npm run evidence:remove -- <id of the seller's certificate> --reason "Order of the court of Example, 12 C 34/26."

Removes the evidence of an exam (the seller's responses) by court order or for privacy. The removal is permanent and public.
The result, the digest of the evidence, and the log entry remain, so every proof still verifies, and GET /cert/<id>/evidence
returns 451 with the reason. Configured by DATABASE_URL, with the owner's role, or by the DATA_DIR of a running
"npm start".`;
const MAX_REASON = 500;

/** @throws SettingError */
function readOrder(): { readonly id: string; readonly reason: string } {
  try {
    const { values, positionals } = parseArgs({ options: { reason: { type: "string" } }, allowPositionals: true });
    const [id = "", ...more] = positionals;
    const reason = values.reason?.trim() ?? "";
    if (more.length === 0 && /^[0-9a-f]{32}$/.test(id) && reason.length > 0 && reason.length <= MAX_REASON)
      return { id, reason };
    throw new Error(`Expected an ID of 32 hex digits and a reason of 1 to ${MAX_REASON} characters.`);
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

async function ownerUrl(): Promise<string> {
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL;
  const { dataDirectory } = await readSettings(process.env);
  const running = await runningPostgres(join(dataDirectory, "postgres"));
  if (running === null)
    throw new SettingError(`Nothing is running in ${dataDirectory}. Set DATABASE_URL, with the owner's role.`);
  return running.ownerUrl;
}

async function remove(client: pg.Client, id: string, reason: string): Promise<string> {
  await client.query("BEGIN");
  const { rows } = await client.query<{ sha256: string; removed: string | null }>(
    `SELECT encode(evidence_sha256, 'hex') AS sha256, (SELECT reason FROM seller_exam_removal WHERE exam = $1) AS removed
      FROM seller_exam_result WHERE exam = $1 FOR UPDATE`,
    [id],
  );
  const [found] = rows;
  if (found === undefined) throw new SettingError(`There is no exam ${id} with a result.`);
  if (found.removed !== null) throw new SettingError(`The evidence of ${id} was already removed: ${found.removed}`);
  await client.query("INSERT INTO seller_exam_removal (exam, reason) VALUES ($1, $2)", [id, reason]);
  await client.query("UPDATE seller_exam_result SET evidence = NULL WHERE exam = $1", [id]);
  await client.query("COMMIT");
  return `Removed the evidence of ${id}. Its SHA-256 was ${found.sha256}. Backups still have it until they expire.`;
}

try {
  const { id, reason } = readOrder();
  const client = new pg.Client({ connectionString: await ownerUrl() });
  await client.connect();
  try {
    console.log(await remove(client, id, reason));
  } finally {
    await client.end();
  }
} catch (error) {
  const isRefused = (error as { code?: string }).code === "42501";
  console.error(
    error instanceof SettingError
      ? error.message
      : isRefused
        ? "The role in DATABASE_URL may not remove evidence. Use the owner's role, as for npm run migrate."
        : `The removal failed: ${String((error as Error).message)}`,
  );
  process.exitCode = 1;
}
