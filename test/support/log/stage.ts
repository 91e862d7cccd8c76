import { connect } from "../../../api/platform/db/connection.ts";
import { boardSeeder } from "../board/seed.ts";
import { forFile } from "../for-file.ts";
import { connectOwner, freshDatabase } from "../service/database.ts";
import { auditLog } from "./audit.ts";
import { CHECKPOINTS_AGE, type LogPlan, logOn } from "./writer.ts";

/** A database with a log, and its records. */
export async function logStage(plan: LogPlan = {}) {
  const database = await freshDatabase();
  const [pool, owner, seeds] = await Promise.all([
    forFile(connect(database.apiUrl)),
    forFile(await connectOwner(database)),
    forFile(boardSeeder(database)),
  ]);
  const log = await logOn(pool, plan);
  let wallet = 0;
  return {
    database,
    pool,
    owner,
    seeds,
    log,
    add: (count: number) =>
      seeds.add(...Array.from({ length: count }, () => ({ wallet: ++wallet, issuedAt: new Date() }))),
    /** Integrates at once, however young the newest checkpoint is. */
    async integrate(by = log): Promise<number> {
      await owner.query(CHECKPOINTS_AGE);
      return by.integrate();
    },
    audit: () => auditLog({ owner, store: log.store, verifier: log.verifier }),
    queued: async () => Number((await owner.query("SELECT count(*) FROM log_pending")).rows[0].count),
  };
}
