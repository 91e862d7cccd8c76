import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import hre from "hardhat";
import type { TestProject } from "vitest/node";
import { NETWORKS, type NetworkFacts } from "../../../api/platform/networks.ts";
import { startAnvil } from "../../../scripts/embedded/anvil.ts";
import { buildContractsFirst } from "../../../scripts/embedded/build-contracts.ts";
import { DEV_FUNDS } from "../../../scripts/embedded/chain.ts";
import { installAgentRegistries, installCommercePayments } from "../../../scripts/embedded/install-contracts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { grantRoles, startPostgres } from "../../../scripts/embedded/postgres.ts";
import { fundAccounts, installUsdc } from "../../../scripts/embedded/usdc.ts";
import { migrate } from "../../../scripts/migrate.ts";
import { buildPackages } from "../../../scripts/packages.ts";
import { isAlive } from "../alive.ts";
import { deploySettlementBatch } from "../chain/contracts.ts";
import type { TestDatabase } from "../service/database.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The migrated database that every test's own is copied from. It must have no connections. */
    readonly templateDatabase: TestDatabase;
    /** One prepared state file per chain id, for anvil's `--load-state`. */
    readonly chainStates: Readonly<Record<number, string>>;
    /** Whether the chains in place of Base behave like it and its providers. */
    readonly likeBase: boolean;
  }
}

/** Hundreds of databases would keep autovacuum busy all the time. */
const UNSAFE_AND_FAST = [
  ...["fsync=off", "synchronous_commit=off", "full_page_writes=off"],
  ...["autovacuum=off", "max_connections=400"],
];

const PREFIX = "trust-test-";

/** A file system in memory, on Linux. */
const MEMORY = "/dev/shm";
/** A run's databases take up to 10 GiB by its end, and its programs half of that. */
const ROOM_BYTES = 16 * 2 ** 30;

const STACK = Symbol.for("trust-test-stack");
/** The stack of the run. It is global, because each project loads this file separately. */
const run = globalThis as { [STACK]?: Promise<Stack> };

interface Stack {
  readonly templateDatabase: TestDatabase;
  readonly chainStates: Readonly<Record<number, string>>;
  readonly stop: () => Promise<void>;
}

/** Vitest's global setup of every project that needs the stack, which is started once for all of them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  run[STACK] ??= startStack();
  const { templateDatabase, chainStates, stop } = await run[STACK];
  project.provide("templateDatabase", templateDatabase);
  project.provide("chainStates", chainStates);
  project.provide("likeBase", project.name === "base");
  return stop;
}

/** One PostgreSQL for the run, and the local chains' initial state, in a folder that is removed afterwards. */
async function startStack(): Promise<Stack> {
  removeLeftovers();
  const folder = mkdtempSync(join(roomiest(), `${PREFIX}${process.pid}-`));
  // PostgreSQL may run as another user, who needs access.
  chmodSync(folder, 0o711);
  const [postgres, chainStates] = await Promise.all([
    startPostgres({ directory: join(folder, "postgres"), port: await freePort(), settings: UNSAFE_AND_FAST }),
    prepareChains(folder, buildContractsFirst(hre, { noTests: true })),
    buildPackages(),
  ]);
  let stopping: Promise<void> | null = null;
  const stop = () => {
    // Stops in the background, because it takes 15 seconds, in which Vitest must learn that its workers have ended.
    stopping ??= postgres.stop().then(() => rm(folder, { recursive: true, force: true }));
    return stopping;
  };
  try {
    await migrate(postgres.ownerUrl);
    await grantRoles(postgres.ownerUrl);
  } catch (cause) {
    await stop();
    throw cause;
  }
  const { ownerUrl, apiUrl, indexerUrl } = postgres;
  return { templateDatabase: { ownerUrl, apiUrl, indexerUrl }, chainStates, stop };
}

/**
 * The folder is in memory if there is enough. A database is 550 files, and on a disk each copy takes ten times as long.
 */
function roomiest(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return Math.min(bavail * bsize, process.availableMemory()) >= ROOM_BYTES ? MEMORY : tmpdir();
}

/** Removes the folders of killed runs. */
function removeLeftovers(): void {
  for (const home of [MEMORY, tmpdir()].filter(existsSync))
    for (const name of readdirSync(home)) {
      const [, pid] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
      if (pid === undefined || isAlive(Number(pid))) continue;
      try {
        rmSync(join(home, name), { recursive: true, force: true });
      } catch {
        // The folder belongs to another user.
      }
    }
}

async function prepareChains(folder: string, built: Promise<void>): Promise<Record<number, string>> {
  const prepare = async (network: NetworkFacts) => {
    const path = join(folder, `${network.key}.json`);
    const { client, process } = await startAnvil({ network, port: await freePort(), options: ["--dump-state", path] });
    await installUsdc(client, network);
    await fundAccounts(client, network, DEV_FUNDS);
    await built;
    await deploySettlementBatch(client);
    await Promise.all([installCommercePayments(client), installAgentRegistries(client)]);
    await process.stop();
    return [network.chainId, path] as const;
  };
  return Object.fromEntries(await Promise.all(Object.values(NETWORKS).map(prepare)));
}
