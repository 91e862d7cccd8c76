import type { ClientBase } from "pg";
import { SCHEMA } from "./environment.ts";
import { IS_HELD, sessionName, writerName } from "./index-lock.ts";

// Ties Ponder to the launcher that started it, and to the index's lock.

/** Undefined if Ponder was started without the launcher. */
const holder = process.env.INDEX_HOLDER;
/** Exits with Ponder's code for a temporary failure. Uncommitted work is lost, and Ponder recovers from that. */
const end = () => process.exit(75);

/** Ends this process when the launcher ends, because the kernel then closes the channel between them. */
export function endWithLauncher(): void {
  if (process.channel === undefined) return;
  process.once("disconnect", end);
  if (!process.connected) end();
}

/**
 * Names each of Ponder's connections, so that the index's next holder can end it, and accepts it only while the launcher's
 * session holds the lock. A Ponder that was suspended and resumes therefore cannot write. Losing a connection ends the
 * process, because Ponder retries a lost backfill transaction in a way that deadlocks with itself. A transaction that is
 * idle for five minutes also ends it. The statement timeout is set here, not by Ponder (ponder-process.ts).
 */
async function belongTo(holder: string, client: ClientBase): Promise<void> {
  client.once("error", end);
  await client.query(
    `select set_config('application_name', $1, false), set_config('statement_timeout', '10min', false),
      set_config('idle_in_transaction_session_timeout', '5min', false)`,
    [writerName(SCHEMA, holder)],
  );
  const { rowCount } = await client.query(IS_HELD, [sessionName(holder)]);
  if (rowCount === 0) end();
}

/** The `onConnect` option of the connection pool. */
export const onConnect = holder === undefined ? {} : { onConnect: (client: ClientBase) => belongTo(holder, client) };
