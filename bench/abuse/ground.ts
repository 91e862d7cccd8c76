import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import hre from "hardhat";
import { buildContracts } from "../../scripts/embedded/build-contracts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantApiRole, startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { type BaseLike, startBaseLike } from "../../test/support/base-like/base-like.ts";
import { BASE } from "../../test/support/base-like/profiles.ts";
import type { Subject } from "./subject.ts";

export interface Database {
  /** The superuser's URL. */
  readonly ownerUrl: string;
  /** The API's role. */
  readonly apiUrl: string;
}

/** Real PostgreSQL and chains, for the services of one checkout. */
export interface Ground {
  readonly subject: Subject;
  /** A chain like Base whose time the attacks make, shared by those that run one after another. */
  readonly base: BaseLike;
  /** A migrated, empty database. */
  readonly newDatabase: () => Promise<Database>;
  /** A chain like Base of the attack's own, whose head is an hour behind the machine's clock. */
  readonly ownBase: () => Promise<BaseLike>;
  /** Ends when everything else does. */
  readonly untilEnd: (end: () => unknown) => void;
  readonly stop: () => Promise<void>;
}

/** One node, so that attacks alone decide which answers differ. */
const PROFILE = { ...BASE, backends: [{ lagMs: 0 }] };
/** The chain's first block: rows can be older than a month. */
const FIRST_BLOCK = 2_000_000;
const FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

export async function openGround(subject: Subject): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), "bench-abuse-"));
  chmodSync(folder, 0o711);
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const stop = async () => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const postgres = await startPostgres({ directory: join(folder, "pg"), port: await freePort(), settings: FAST });
    ends.push(postgres.stop);
    await subject.migrate(postgres.ownerUrl);
    await grantApiRole(postgres.ownerUrl);
    await buildContracts(hre);
    const base = await startBaseLike({ profile: PROFILE, firstBlock: FIRST_BLOCK });
    ends.push(base.stop);
    return {
      subject,
      base,
      newDatabase: () => copyOf(postgres),
      ownBase: async () => {
        const own = await startBaseLike({ profile: PROFILE, behindMinutes: 60 });
        ends.push(own.stop);
        return own;
      },
      untilEnd: (end) => ends.push(end),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function copyOf({ ownerUrl, apiUrl }: Database): Promise<Database> {
  const name = `abuse_${randomBytes(6).toString("hex")}`;
  const within = (url: string, database: string) => url.replace(/[^/]+$/, database);
  await withClient(within(ownerUrl, "postgres"), (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${ownerUrl.split("/").at(-1)}`),
  );
  return { ownerUrl: within(ownerUrl, name), apiUrl: within(apiUrl, name) };
}
