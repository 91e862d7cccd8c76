import type { ClientBase } from "pg";
import { SCHEMA } from "./environment.ts";
import { IS_HELD, sessionName, writerName } from "./holder.ts";

// What ties a Ponder that the launcher has started to its launcher, and to the index's lock.

/** The launcher's name for this run; undefined if Ponder was started without the launcher. */
const holder = process.env.INDEX_HOLDER;
/** Ponder's own exit code for a temporary failure. */
const TRY_AGAIN = 75;
const end = () => process.exit(TRY_AGAIN);

/**
 * Ends this process when the launcher is gone, however it ended: the kernel then closes the launcher's end of the channel. What
 * Ponder has not committed is lost, which is what it recovers from at its next start.
 */
export function endWithLauncher(): void {
  if (process.channel === undefined) return;
  process.once("disconnect", end);
  if (!process.connected) end();
}

/**
 * Makes each of Ponder's connections the launcher's: it has a name by which the index's next holder can end it, and it is used
 * only while the launcher's session holds the index's lock. A Ponder that was stopped, lost its connections meanwhile and goes
 * on can therefore write nothing. Losing one connection ends the process too, because Ponder repeats a lost transaction of its
 * backfill in a way that makes it wait for itself forever. So does a transaction in which nothing happens for five minutes.
 */
async function belongTo(holder: string, client: ClientBase): Promise<void> {
  client.once("error", end);
  await client.query(
    "select set_config('application_name', $1, false), set_config('idle_in_transaction_session_timeout', '5min', false)",
    [writerName(SCHEMA, holder)],
  );
  const { rowCount } = await client.query(IS_HELD, [sessionName(holder)]);
  if (rowCount === 0) end();
}

/** The option of the connection pool. */
export const onConnect = holder === undefined ? {} : { onConnect: (client: ClientBase) => belongTo(holder, client) };
