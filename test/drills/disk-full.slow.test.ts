import { spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantRoles, type Postgres, startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, startApiProcess } from "../support/service/api-process.ts";
import { clockOffBy } from "../support/service/clock.ts";

// docs/drills.md, "The disk is full". The file system is a small tmpfs, which only root may mount.

const PATIENT = { timeout: 60_000, interval: 250 };
const MEGABYTE = 1_048_576;
const disk = mkdtempSync(join(tmpdir(), "trust-disk-"));
const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256m", "tmpfs", disk]).status === 0;
if (!isMounted) console.warn("skipped: no tmpfs can be mounted here, so no disk can be full");

const [base, sepolia] = await Promise.all([
  forFile(startTestChain()),
  forFile(startTestChain({ network: "eip155:84532" })),
]);
await fundRelayer(base);

let postgres: Postgres | undefined;
let api: ApiProcess | undefined;

afterEach(async () => {
  await api?.kill();
  await postgres?.stop();
  rmSync(join(disk, "cluster"), { recursive: true, force: true });
});
afterAll(() => {
  if (isMounted) spawnSync("umount", [disk]);
  rmSync(disk, { recursive: true, force: true });
});

const start = async (): Promise<Postgres> =>
  startPostgres({
    directory: join(disk, "cluster"),
    port: await freePort(),
    logFile: join(tmpdir(), `disk-full-${process.pid}.log`),
    settings: ["min_wal_size=32MB", "max_wal_size=48MB", "restart_after_crash=off"],
  });

/** Leaves no byte free. */
function fill(): void {
  const file = openSync(join(disk, "filler"), "w");
  for (let size = MEGABYTE; size >= 1; ) {
    try {
      writeSync(file, Buffer.alloc(size, 1));
    } catch {
      size = Math.floor(size / 4);
    }
  }
  closeSync(file);
}

const buy = async (signed: Signed) => post(`${api?.url}/test/basic`, v2(signed));

describe.skipIf(!isMounted).each([
  ["the right clock", 0],
  ["a clock that is an hour ahead", 3_600_000],
  ["a clock that is an hour behind", -3_600_000],
])("PostgreSQL with a full disk, under a process with %s", (_, offsetMs) => {
  test("No payment is lost or charged twice, and service resumes once there is space", async () => {
    chmodSync(disk, 0o755);
    postgres = await start();
    await migrate(postgres.ownerUrl);
    await grantRoles(postgres.ownerUrl);
    const chains = { baseRpcUrl: base.rpcUrl, baseSepoliaRpcUrl: sepolia.rpcUrl };
    api = await startApiProcess({ database: postgres, ...chains, env: clockOffBy(offsetMs) });
    // Valid long enough for a process that is one hour ahead to accept it.
    const sign = async () => signPayment(await newPayer(base), { validBefore: unixNow() + 7_200n });
    const first = await sign();
    expect((await buy(first)).status).toBe(200);

    fill();
    await withClient(postgres.ownerUrl, async (client) => {
      await client.query("SELECT pg_switch_wal()");
    }).catch(() => undefined);
    const sent: Signed[] = [first];
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 8; attempt++) {
      const signed = await sign();
      sent.push(signed);
      statuses.push((await buy(signed)).status);
    }
    expect(statuses).toContain(503);
    expect(statuses.filter((status) => ![200, 503].includes(status))).toEqual([]);
    expect((await send(`${api.url}/health`)).status).toBe(200);

    // The runbook: free some space, and start PostgreSQL if it has stopped.
    rmSync(join(disk, "filler"));
    const url = postgres.ownerUrl;
    const isUp = await withClient(url, (client) => client.query("SELECT 1")).then(
      () => true,
      () => false,
    );
    if (!isUp) {
      await postgres.stop();
      const port = Number(new URL(url).port);
      postgres = await startPostgres({ directory: join(disk, "cluster"), port });
    }
    await api.kill();
    api = await startApiProcess({ database: postgres, ...chains });
    for (const signed of sent) {
      await expect.poll(async () => (await buy(signed)).status, PATIENT).toBe(200);
      await chargedOnce(base, signed);
    }
  });
});
