import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantRoles, type Postgres, startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce } from "../support/payments/on-chain.ts";
import { post, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, startApiProcess } from "../support/service/api-process.ts";

// docs/drills.md, "Failover to a replica that lost the last commits".

const PATIENT = { timeout: 30_000, interval: 100 };
const SETTINGS = ["wal_level=replica", "max_wal_senders=4", "hot_standby=on"];
const home = mkdtempSync(join(tmpdir(), "trust-failover-"));
chmodSync(home, 0o755);
const servers: Postgres[] = [];
const processes: ApiProcess[] = [];
afterAll(async () => {
  await Promise.all(processes.map((one) => one.kill()));
  for (const server of servers) await server.stop();
  rmSync(home, { recursive: true, force: true, maxRetries: 20 });
});

const [base, sepolia] = await Promise.all([
  forFile(startTestChain()),
  forFile(startTestChain({ network: "eip155:84532" })),
]);
await fundRelayer(base);

async function start(name: string, settings: readonly string[]): Promise<Postgres> {
  const server = await startPostgres({ directory: join(home, name), port: await freePort(), settings });
  servers.push(server);
  return server;
}

async function startApi(database: Postgres): Promise<ApiProcess> {
  const api = await startApiProcess({ database, baseRpcUrl: base.rpcUrl, baseSepoliaRpcUrl: sepolia.rpcUrl });
  processes.push(api);
  return api;
}

/** Makes a standby of the server from a PostgreSQL base backup. */
async function standby(primary: Postgres): Promise<Postgres> {
  mkdirSync(join(home, "standby"));
  const cluster = join(home, "standby", "cluster");
  await withClient(primary.ownerUrl, async (client) => {
    await client.query("SELECT pg_backup_start('standby', fast => true)");
    expect(spawnSync("cp", ["-a", join(home, "primary", "cluster"), cluster]).status).toBe(0);
    const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
    const { uid, gid } = statSync(cluster);
    for (const [name, text] of [
      ["backup_label", rows[0]?.labelfile ?? ""],
      ["standby.signal", ""],
    ] as const) {
      writeFileSync(join(cluster, name), text, { mode: 0o600 });
      chownSync(join(cluster, name), uid, gid);
    }
  });
  for (const name of ["postmaster.pid", "postmaster.opts"]) rmSync(join(cluster, name), { force: true });
  for (const name of readdirSync(join(cluster, "pg_wal"))) rmSync(join(cluster, "pg_wal", name), { recursive: true });
  expect(spawnSync("cp", ["-a", join(home, "primary", "passwords.json"), join(home, "standby")]).status).toBe(0);
  const { username, password, port } = new URL(primary.ownerUrl);
  return start("standby", [
    ...SETTINGS,
    `primary_conninfo=host=127.0.0.1 port=${port} user=${username} password=${password}`,
  ]);
}

const ask = async <Row extends object>({ ownerUrl }: Postgres, text: string): Promise<Row | undefined> =>
  withClient(ownerUrl, async (client) => (await client.query<Row>(text)).rows[0]);

test("Payments whose commits the replica missed are found on chain, with the same certificate and no second charge", async () => {
  const primary = await start("primary", SETTINGS);
  await migrate(primary.ownerUrl);
  await grantRoles(primary.ownerUrl);
  const api = await startApi(primary);
  const pay = (by: ApiProcess, signed: Signed) => post(`${by.url}/test/basic`, v2(signed));
  const replica = await standby(primary);

  const kept = await signPayment(await newPayer(base));
  const answer = await pay(api, kept);
  expect(answer.status).toBe(200);
  const { lsn } = (await ask<{ lsn: string }>(primary, "SELECT pg_current_wal_lsn()::text AS lsn")) ?? { lsn: "" };
  const hasIt = async () =>
    (await ask<{ has: boolean }>(replica, `SELECT pg_last_wal_replay_lsn() >= '${lsn}' AS has`))?.has;
  await expect.poll(hasIt, PATIENT).toBe(true);

  // The link breaks before the primary is lost, so the commits in between are on no other disk.
  await withClient(primary.ownerUrl, async (client) => {
    await client.query("ALTER SYSTEM SET max_wal_senders = 4");
    await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
  });
  await withClient(replica.ownerUrl, (client) => client.query("SELECT pg_promote(true, 30)"));
  const lost = await Promise.all(
    [1, 2, 3].map(async () => {
      const signed = await signPayment(await newPayer(base));
      const sold = await pay(api, signed);
      expect(sold.status).toBe(200);
      return { signed, id: sold.body.id };
    }),
  );
  await api.kill();
  process.kill(primary.process.pid, "SIGKILL");
  await primary.process.ended;

  const after = await startApi(replica);
  const again = await pay(after, kept);
  expect([again.status, again.text]).toEqual([200, answer.text]);
  for (const { signed, id } of lost) {
    const found = await pay(after, signed);
    expect([found.status, found.body.id]).toEqual([200, id]);
    await chargedOnce(base, signed);
  }
  // The relayer continues with the chain's nonce, although this database does not have its last transactions.
  const fresh = await signPayment(await newPayer(base));
  await expect.poll(async () => (await pay(after, fresh)).status, PATIENT).toBe(200);
  await chargedOnce(base, fresh);
});
