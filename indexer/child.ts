import type { ClientBase } from "pg";
import { SCHEMA } from "./environment.ts";
import { IS_HELD, sessionName, writerName } from "./index-lock.ts";

// What ties a Ponder to the launcher that started it, and to the index's lock.

/** Undefined if Ponder was started without the launcher. */
const holder = process.env.INDEX_HOLDER;
/** With Ponder's own exit code for a temporary failure. What it has not committed is lost, and it recovers from that. */
const end = () => process.exit(75);

/** Ends this process with the launcher: the kernel then closes the launcher's end of the channel. */
export function endWithLauncher(): void {
  if (process.channel === undefined) return;
  process.once("disconnect", end);
  if (!process.connected) end();
}

/**
 * Names each of Ponder's connections, so that the index's next holder can end it, and uses it only while the launcher's
 * session holds the lock. A Ponder that was stopped and goes on can therefore write nothing. Losing one connection ends
 * the process, because Ponder repeats a lost transaction of its backfill in a way that makes it wait for itself forever.
 * So does a transaction in which nothing happens for five minutes. A statement's time is limited here, and not by Ponder
 * (ponder-process.ts).
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

/** The option of the connection pool. */
export const onConnect = holder === undefined ? {} : { onConnect: (client: ClientBase) => belongTo(holder, client) };
