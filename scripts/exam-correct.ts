import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { readDatabaseUrl } from "../api/platform/config/environment.ts";
import { connect } from "../api/platform/db/connection.ts";
import { createExamStore } from "../api/sellers/exam-store.ts";
import { createGrantStore, type GrantStore, tokenSha256 } from "../api/sellers/orders-store.ts";
import { correctExam, type ExamCorrected } from "../api/sellers/published/read-published.ts";
import { createCorrections } from "../api/sellers/published/store.ts";
import { apiEnvironment } from "./embedded/environment.ts";
import { SettingError } from "./embedded/settings.ts";

const USAGE = `Usage: npm run exam:correct -- <id of the seller's certificate> --reason "what the examiner got wrong" [--free-exam]
       npm run exam:correct -- <id of a corrected certificate> --free-exam

Marks the certificate as the examiner's error, permanently and in public. The certificate then no longer counts. --free-exam
grants the seller one free exam of the same request, and prints its token. If the exam has not been taken yet, running this
again replaces the token. Configured by DATABASE_URL, or by the DATA_DIR and PORT of a running "npm start".`;
const MAX_REASON = 500;

interface Order {
  readonly id: string;
  /** Null to only grant an exam. */
  readonly reason: string | null;
  readonly isFree: boolean;
}

/** @throws SettingError */
function readOrder(args: readonly string[]): Order {
  let parsed: { values: { reason?: string; "free-exam"?: boolean }; positionals: string[] };
  try {
    const options = { reason: { type: "string" }, "free-exam": { type: "boolean" } } as const;
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
  const [id = "", ...more] = parsed.positionals;
  const isFree = parsed.values["free-exam"] ?? false;
  const reason = parsed.values.reason?.trim() ?? null;
  const isWrong = reason === null ? !isFree : reason === "" || reason.length > MAX_REASON;
  if (more.length > 0 || !/^[0-9a-f]{32}$/.test(id) || isWrong)
    throw new SettingError(
      `Expected an ID of 32 hex digits and a reason of 1 to ${MAX_REASON} characters.\n\n${USAGE}`,
    );
  return { id, reason, isFree };
}

function tell(outcome: ExamCorrected, id: string): string {
  if ("corrected" in outcome) return `${id} of ${outcome.corrected.order.origin} is corrected and no longer counts.`;
  switch (outcome.refused) {
    case "unknown":
      throw new SettingError(`There is no exam ${id}.`);
    case "not_published":
      throw new SettingError(`Exam ${id} is not published, so there is no certificate to correct.`);
    case "corrected":
      throw new SettingError(`Exam ${id} has already been corrected: ${outcome.reason}`);
    default:
      return outcome satisfies never;
  }
}

async function grant(grants: GrantStore, id: string): Promise<string> {
  const token = randomBytes(16).toString("hex");
  if (!(await grants.grant(id, tokenSha256(token))))
    throw new SettingError(`The free exam for ${id} has already been taken.`);
  return `Send the seller this token for one free exam: POST /exam/${id}/again {"token":"${token}"}`;
}

try {
  const { id, reason, isFree } = readOrder(process.argv.slice(2));
  const env = await apiEnvironment(process.env);
  const database = readDatabaseUrl("a PostgreSQL URL, like postgres://api:secret@localhost:5432/trust", env);
  if ("problem" in database) throw new SettingError(database.problem);
  const pool = connect(database.url, 1);
  const store = { ...createExamStore(pool), ...createCorrections(pool) };
  try {
    if (reason !== null) console.log(tell(await correctExam(store, id, reason), id));
    else if (!(await store.get(id))?.correction) throw new SettingError(`Exam ${id} has not been corrected.`);
    if (isFree) console.log(await grant(createGrantStore(pool), id));
  } finally {
    await pool.end();
  }
} catch (error) {
  console.error(
    error instanceof SettingError ? error.message : `The correction failed: ${String((error as Error).message)}`,
  );
  process.exitCode = 1;
}
