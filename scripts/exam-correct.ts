import { parseArgs } from "node:util";
import { connect } from "../api/adapters/postgres/connection.ts";
import { createExamStore } from "../api/adapters/postgres/exam-store.ts";
import { createCorrections } from "../api/adapters/postgres/published-exams.ts";
import { correctExam, type ExamCorrected } from "../api/seller-exam/published/correct-exam.ts";
import { embeddedEnvironment } from "./embedded/environment.ts";
import { SettingError } from "./embedded/settings.ts";

const USAGE = `Usage: npm run exam:correct -- <id of the seller's certificate> --reason "what the examiner got wrong"

Says beside the certificate that the examiner was wrong: for good, and in public. It counts for nothing from then on. On the
database of DATABASE_URL, or by the DATA_DIR and PORT of a running "npm start".`;
const MAX_REASON = 500;

/** @throws SettingError */
function readOrder(args: readonly string[]): { readonly id: string; readonly reason: string } {
  let parsed: { values: { reason?: string }; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], options: { reason: { type: "string" } }, allowPositionals: true });
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
  const [id = "", ...more] = parsed.positionals;
  const reason = parsed.values.reason?.trim() ?? "";
  if (more.length > 0 || !/^[0-9a-f]{32}$/.test(id) || reason === "" || reason.length > MAX_REASON)
    throw new SettingError(
      `Expected an ID of 32 hex digits and a reason of 1 to ${MAX_REASON} characters.\n\n${USAGE}`,
    );
  return { id, reason };
}

function tell(outcome: ExamCorrected, id: string): string {
  if ("corrected" in outcome) return `${id} of ${outcome.corrected.order.origin} is corrected, and counts no more.`;
  switch (outcome.refused) {
    case "unknown":
      throw new SettingError(`There is no exam ${id}.`);
    case "not_published":
      throw new SettingError(`Exam ${id} is not published: it certifies nothing that could be corrected.`);
    case "corrected":
      throw new SettingError(`Exam ${id} has already been corrected: ${outcome.reason}`);
    default:
      return outcome satisfies never;
  }
}

try {
  const { id, reason } = readOrder(process.argv.slice(2));
  const databaseUrl = process.env.DATABASE_URL || (await embeddedEnvironment(process.env)).DATABASE_URL;
  const pool = connect(String(databaseUrl), 1);
  try {
    console.log(tell(await correctExam({ ...createExamStore(pool), ...createCorrections(pool) }, id, reason), id));
  } finally {
    await pool.end();
  }
} catch (error) {
  console.error(
    error instanceof SettingError ? error.message : `The correction failed: ${String((error as Error).message)}`,
  );
  process.exitCode = 1;
}
