import { spawnSync } from "node:child_process";
import { chownSync, existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkDatabase } from "../../../api/operations/probes.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { findPostgres } from "../../../scripts/embedded/postgres-program.ts";
import { migrate } from "../../../scripts/migrate.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { fundRelayer, startApiProcess } from "../../support/service/api-process.ts";
import { createDatabase } from "../../support/service/database.ts";
import { bareEnvironment, PAY_TO } from "../../support/service/environment.ts";
import { startPgBouncer, unpackPgBouncer } from "../../support/service/pgbouncer.ts";
import { waitUntil } from "../../support/wait-until.ts";

const folder = await folderForFile("trust-test-");
const program = unpackPgBouncer(join(folder, "debian"));
if (typeof program === "string") console.log(`PgBouncer is skipped: ${program}`);

test.skipIf(typeof program === "string")(
  "A new database behind PgBouncer in session mode is migrated, sells, and is indexed",
  async () => {
    if (typeof program === "string") return;
    const pooled = await forFile(startPgBouncer(program, await createDatabase(), folder));

    await migrate(pooled.ownerUrl);
    const pool = await forFile(connect(pooled.apiUrl, 1));
    const settings = ["statement_timeout", "idle_in_transaction_session_timeout", "plan_cache_mode", "jit"];
    const shown = settings.map((name) => pool.query<Record<string, string>>(`SHOW ${name}`));
    const found = (await Promise.all(shown)).flatMap(({ rows: [row] }) => Object.values(row ?? {}));
    expect(found).toEqual(["5s", "10s", "force_generic_plan", "off"]);

    const chain = await forFile(startTestChain());
    await fundRelayer(chain);
    const indexer = await forFile(launchIndexerOf({ chain, database: pooled, env: { START_BLOCK: "0" } }));
    const api = await forFile(
      startApiProcess({
        database: pooled,
        baseRpcUrl: chain.rpcUrl,
        baseSepoliaRpcUrl: (await forFile(startTestChain({ network: "eip155:84532" }))).rpcUrl,
      }),
    );
    const signed = await signPayment(await newPayer(chain));
    expect((await post(`${api.url}/test/basic`, v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
    await indexer.untilLogged("index ready");

    // The CA is in no trust store, so a connection fails unless its certificate is given.
    const secured = (parameters: string) => `${pooled.apiUrl}?${parameters}`;
    const root = `sslrootcert=${pooled.ca}`;
    for (const parameters of [`sslmode=verify-full&${root}`, `sslmode=require&${root}`]) {
      const encrypted = await forFile(connect(secured(parameters), 1));
      expect((await encrypted.query("SELECT 1 AS one")).rows, parameters).toEqual([{ one: 1 }]);
    }
    const blind = await forFile(connect(secured("sslmode=verify-full"), 1));
    await expect(blind.query("SELECT 1")).rejects.toThrow(/certificate/);
    const elsewhere = await forFile(
      connect(secured(`sslmode=verify-full&${root}`).replace("localhost", "127.0.0.1"), 1),
    );
    await expect(elsewhere.query("SELECT 1")).rejects.toThrow(/does not match certificate|altnames/);
    await migrate(`${pooled.ownerUrl}?sslmode=verify-full&${root}`);
    await indexer.stop();
    const again = await forFile(
      launchIndexerOf({
        chain,
        database: { indexerUrl: `${pooled.indexerUrl}?sslmode=verify-full&${root}` },
        env: { START_BLOCK: "0" },
      }),
    );
    await again.untilLogged("index ready");
  },
);

const OLD = "/usr/lib/postgresql/15/bin";
if (!existsSync(OLD)) console.log("PostgreSQL 15 is skipped because it is not installed");

/** Starts an empty PostgreSQL 15 server without authentication. */
async function startOldPostgres(): Promise<string> {
  const home = await folderForFile("trust-test-");
  const { user } = findPostgres(home);
  if (user !== undefined) chownSync(home, user.uid, user.gid);
  const as = user === undefined ? {} : { user };
  const cluster = ["-D", join(home, "cluster")];
  const made = await startGuarded({ command: join(OLD, "initdb"), args: [...cluster, "--username=postgres"], ...as });
  expect(await made.ended, made.lastOutput()).toBe(0);
  const port = String(await freePort());
  const args = [...cluster, "-p", port, "-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1"];
  await forFile(startGuarded({ command: join(OLD, "postgres"), args, stopSignal: "SIGINT", ...as }));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const answers = () =>
    withClient(url, (client) => client.query("select")).then(
      () => true,
      () => false,
    );
  expect(await waitUntil(answers, 20_000)).toBe(true);
  return url;
}

test.skipIf(!existsSync(OLD))("Migrations, the API, and the indexer refuse PostgreSQL 15 in one line", async () => {
  const url = await startOldPostgres();
  const refusal = /^DATABASE_URL is a PostgreSQL 15\..*, but 16 or newer is required\.$/;
  await expect(migrate(url)).rejects.toThrow(refusal);
  const pool = await forFile(connect(url, 1));
  expect(await checkDatabase(pool)).toMatch(refusal);
  const settings = { DATABASE_URL: url, BASE_RPC_URL: "http://127.0.0.1:9", PAY_TO_ADDRESS: PAY_TO };
  const env = { ...bareEnvironment(), ...settings };
  const indexer = spawnSync(process.execPath, ["scripts/indexer.ts"], {
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
  expect(indexer.status).toBe(1);
  expect(indexer.stderr).toMatch(/DATABASE_URL is a PostgreSQL 15\..*, but 16 or newer is required\.$/m);
});
