import pg from "pg";

/** The name of the connections on which Ponder stores the blocks that it fetches. */
const FETCHING = "ponder_sync";

/**
 * From now on Ponder ends, to be started again, when a transaction of fetched blocks fails, as it does when its connection
 * is lost or two processes lock each other's rows. Ponder would repeat that transaction, which queues the blocks after it
 * a second time; these wait for each other then, and the backfill stands still.
 */
export function endAtFailedFetch(): void {
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client & Named, ...args: unknown[]) {
    if (this.connectionParameters.application_name === FETCHING && textOf(args[0]) === "rollback") end();
    return Reflect.apply(query, this, args);
  } as typeof query;
}

interface Named {
  readonly connectionParameters: { readonly application_name?: string };
}

const textOf = (query: unknown): unknown =>
  typeof query === "object" && query !== null && "text" in query ? query.text : query;

/** Ponder logs what nobody catches, closes, and exits with the code for a temporary reason; while it closes it does nothing. */
const end = (): void =>
  queueMicrotask(() => {
    throw new Error("A transaction of fetched blocks failed. Ponder starts again where it was.");
  });
