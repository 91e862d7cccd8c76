import pg from "pg";
import type { NewResult } from "../../../api/sellers/exam-store.ts";
import type { ExamOrder } from "../../../api/sellers/record.ts";
import { startTestChain } from "../chain/chain.ts";
import { forFile } from "../for-file.ts";
import { send } from "../payments/requests.ts";
import { startService } from "../service/service.ts";
import { heldIn } from "./samples.ts";

/** Starts the service for a file that stores exams and reads their records. */
export async function startRecords(now = () => new Date()) {
  const service = await forFile(startService({ chain: await forFile(startTestChain()), now }));
  const pool = await forFile(new pg.Pool({ connectionString: service.database.apiUrl, max: 1 }));
  return {
    service,
    pool,
    get: (path: string, accept = "application/json") => send(`${service.url}${path}`, { headers: { accept } }),
    /** Stores an exam that ended a minute ago. @returns its id */
    held: (...exam: [Partial<ExamOrder>?, Partial<NewResult>?]) => heldIn(pool, ...exam),
  };
}
