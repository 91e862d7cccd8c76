import { randomBytes } from "node:crypto";
import type pg from "pg";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import type { TestDatabase } from "../service/database.ts";

/** A backup: the database as it is now, restored under another name. Nobody may be connected to the first one. */
export async function copyOf({ ownerUrl, apiUrl }: TestDatabase): Promise<TestDatabase> {
  const name = `restored_${randomBytes(6).toString("hex")}`;
  const other = (url: string, database: string) => url.replace(/[^/]+$/, database);
  const original = ownerUrl.slice(ownerUrl.lastIndexOf("/") + 1);
  await withClient(other(ownerUrl, "postgres"), (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${original} STRATEGY file_copy`),
  );
  return { ownerUrl: other(ownerUrl, name), apiUrl: other(apiUrl, name) };
}

/** What a broken network does to a pool: its idle connections are gone. */
export async function endConnections(pool: pg.Pool): Promise<void> {
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  for (const client of clients) client.release(true);
}
