import { randomBytes } from "node:crypto";
import pg from "pg";
import type { Hex } from "viem";
import { inject } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { eachPayment } from "./row-by-row.ts";

export interface TestDatabase {
  /** The superuser's URL. */
  readonly ownerUrl: string;
  /** The API's role: exactly what production's API may do. */
  readonly apiUrl: string;
}

/** A migrated, empty database for the test file. It is removed with the run's PostgreSQL. */
export const freshDatabase = (): Promise<TestDatabase> =>
  // A third of the time that copying through the write-ahead log takes, which matters only where a crash does.
  createDatabase("template trust strategy file_copy");

/** A database of this kind, with nothing in it by default. */
export async function createDatabase(kind = ""): Promise<TestDatabase> {
  const template = inject("templateDatabase");
  const name = `test_${randomBytes(6).toString("hex")}`;
  await withClient(serverUrl(), (client) => client.query(`create database ${name} ${kind}`));
  return { ownerUrl: inDatabase(template.ownerUrl, name), apiUrl: inDatabase(template.apiUrl, name) };
}

/** The owner's connection, for inspection. It survives a database that is removed. */
export async function connectOwner({ ownerUrl }: TestDatabase): Promise<pg.Client> {
  const owner = new pg.Client({ connectionString: ownerUrl });
  owner.on("error", () => undefined);
  await owner.connect();
  return owner;
}

/** What the database stores for a hex value, and the reverse. */
export const binary = (hex: string): Buffer => Buffer.from(hex.slice(2), "hex");
export const hexOf = (bytes: Buffer): Hex => `0x${bytes.toString("hex")}`;

/** What so many seconds do by the database's clock: leases end, and what waits is due. */
export async function age({ ownerUrl }: TestDatabase, seconds: number): Promise<void> {
  const by = `interval '${seconds} seconds'`;
  await withClient(ownerUrl, async (client) => {
    await client.query(eachPayment(`lease_until = lease_until - ${by}, next_attempt_at = next_attempt_at - ${by}`));
    await client.query(`UPDATE relay SET tended_at = tended_at - ${by}`);
  });
}

/** The superuser's URL of the run's PostgreSQL, in no test's database. */
const serverUrl = (): string => inDatabase(inject("templateDatabase").ownerUrl, "postgres");

const inDatabase = (url: string, name: string): string => url.replace(/[^/]+$/, name);
