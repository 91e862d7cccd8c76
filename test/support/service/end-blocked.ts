import { withClient } from "../../../scripts/embedded/postgres.ts";
import { eventually } from "../eventually.ts";
import type { TestDatabase } from "./database.ts";

const END = `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`;

/** Ends the one connection that waits for a lock in a statement with this prefix: what it was sent is undone. */
export const endBlocked = ({ ownerUrl }: Pick<TestDatabase, "ownerUrl">, statement: string): Promise<void> =>
  // A client of its own: what a transaction has read of others' activity does not change.
  withClient(ownerUrl, (client) =>
    eventually(async () => (await client.query(END, [`${statement}%`])).rows, [{ ended: true }]),
  );
