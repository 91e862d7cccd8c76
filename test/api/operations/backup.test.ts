import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { grantRoles, type Postgres, startPostgres, withClient } from "../../../scripts/embedded/postgres.ts";
import { migrate } from "../../../scripts/migrate.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, startApiProcess } from "../../support/service/api-process.ts";

// Runs the statements and settings of docs/backup.md.

const PATIENT = { timeout: 20_000, interval: 50 };
/** A payment with a shorter window is refused (`WINDOW_MARGIN_SECONDS`). */
const SHORTEST_WINDOW = 20n;

let home: string;
let archive: string;
let chains: readonly [TestChain, TestChain];
let postgres: Postgres;
let api: ApiProcess;

const settings = ["wal_level=replica"];

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "trust-backup-"));
  archive = join(home, "archive");
  mkdirSync(archive);
  // PostgreSQL may run as another user.
  chmodSync(home, 0o755);
  chmodSync(archive, 0o777);
  chains = await Promise.all([startTestChain(), startTestChain({ network: "eip155:84532" })]);
  await fundRelayer(chains[0]);
  const archiving = ["archive_mode=on", `archive_command=test ! -f ${archive}/%f && cp %p ${archive}/%f`];
  postgres = await start("first", [...settings, ...archiving]);
  await migrate(postgres.ownerUrl);
  await grantRoles(postgres.ownerUrl);
  api = await startApi();
});
afterAll(async () => {
  await api?.kill();
  await postgres?.stop();
  await Promise.all((chains ?? []).map((chain) => chain.stop()));
  rmSync(home, { recursive: true, force: true, maxRetries: 20 });
});

const start = async (name: string, more: readonly string[]): Promise<Postgres> =>
  startPostgres({ directory: join(home, name), port: await freePort(), settings: more });
const startApi = () =>
  startApiProcess({ database: postgres, baseRpcUrl: chains[0].rpcUrl, baseSepoliaRpcUrl: chains[1].rpcUrl });
const ask = async (text: string) => withClient(postgres.ownerUrl, async (client) => (await client.query(text)).rows);
const copy = (from: string, to: string) =>
  expect([from, spawnSync("cp", ["-a", from, to], { encoding: "utf8" }).stderr]).toEqual([from, ""]);

interface Bought {
  readonly signed: Signed;
  readonly answer: Answer;
}

const send = ({ signed }: Pick<Bought, "signed">): Promise<Answer> => post(`${api.url}/test/basic`, v2(signed));

async function buy(validForSeconds = 300n): Promise<Bought> {
  const signed = await signPayment(await newPayer(chains[0]), { validBefore: unixNow() + validForSeconds });
  const answer = await send({ signed });
  expect(answer.status).toBe(200);
  return { signed, answer };
}

/** Makes a base backup of the running server. Writes during the backup are in the archive. */
async function backUp(to: string, meanwhile: () => Promise<Bought>): Promise<Bought> {
  return withClient(postgres.ownerUrl, async (client) => {
    await client.query("SELECT pg_backup_start('base', fast => true)");
    const [found] = (await client.query<{ data_directory: string }>("SHOW data_directory")).rows;
    copy(found?.data_directory ?? "", to);
    const bought = await meanwhile();
    const [label] = (await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop()")).rows;
    own(to, "backup_label", label?.labelfile ?? "");
    for (const name of ["postmaster.pid", "postmaster.opts"]) rmSync(join(to, name), { force: true });
    for (const name of readdirSync(join(to, "pg_wal"))) rmSync(join(to, "pg_wal", name), { recursive: true });
    return bought;
  });
}

/** Writes a file that belongs to the cluster's owner. */
function own(cluster: string, name: string, text: string): void {
  const { uid, gid } = statSync(cluster);
  writeFileSync(join(cluster, name), text, { mode: 0o600 });
  chownSync(join(cluster, name), uid, gid);
}

/** Waits until everything written before the call is in the archive. */
async function archiveNow(): Promise<void> {
  const [{ file }] = (await ask("SELECT pg_walfile_name(pg_switch_wal()) AS file")) as [{ file: string }];
  await expect.poll(() => readdirSync(archive), PATIENT).toContain(file);
}

/** Starts a server on the base backup and replays the archive to its end. */
async function restore(from: string): Promise<Postgres> {
  mkdirSync(join(home, "second"));
  copy(from, join(home, "second", "cluster"));
  // The backup contains the roles' passwords.
  copy(join(home, "first", "passwords.json"), join(home, "second", "passwords.json"));
  own(join(home, "second", "cluster"), "recovery.signal", "");
  const restored = await start("second", [...settings, `restore_command=cp ${archive}/%f %p`]);
  postgres = restored;
  const recovering = async () => (await ask("SELECT pg_is_in_recovery() AS yes"))[0]?.yes;
  await expect.poll(recovering, PATIENT).toBe(false);
  return restored;
}

test("After a lost disk, the archive is restored, and a payment that is missing from it is still charged only once", async () => {
  const base = join(home, "base");
  const before = await buy();
  const during = await backUp(base, buy);
  const after = await buy();
  await archiveNow();
  const lost = await buy();
  const lostAndLate = await buy(SHORTEST_WINDOW + 3n);

  await api.kill();
  process.kill(postgres.process.pid, "SIGKILL");
  await postgres.process.ended;
  rmSync(join(home, "first", "cluster"), { recursive: true, maxRetries: 20 });
  await restore(base);
  await migrate(postgres.ownerUrl);
  api = await startApi();

  for (const kept of [before, during, after]) {
    const again = await send(kept);
    expect([again.status, again.text, again.headers.get("x-idempotent-replay")]).toEqual([
      200,
      kept.answer.text,
      "true",
    ]);
    await chargedOnce(chains[0], kept.signed);
  }
  // The payment is on the chain but not in the journal, so the same certificate is issued again.
  const again = await send(lost);
  expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, null]);
  expect(again.body).toMatchObject({ id: lost.answer.body.id });
  await chargedOnce(chains[0], lost.signed);
  // A payment is also looked up after its window, when it can no longer be submitted.
  const { validBefore } = lostAndLate.signed.authorization;
  await expect.poll(() => validBefore - unixNow() < SHORTEST_WINDOW, PATIENT).toBe(true);
  const late = await send(lostAndLate);
  expect([late.status, late.body.id]).toEqual([200, lostAndLate.answer.body.id]);
  await chargedOnce(chains[0], lostAndLate.signed);

  // The relayer continues with the chain's nonce, and append-only tables are still append-only.
  await chargedOnce(chains[0], (await buy()).signed);
  await expect(ask("UPDATE certificate SET level = 'x'")).rejects.toThrow("certificate is append-only");
}, 120_000);
