// Writes a log of ours, as `npm run log:export` does, to the folder it is run in: what run.sh lets programs read that are not ours.
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect } from "../../api/adapters/postgres/connection.ts";
import { createLogStore } from "../../api/adapters/postgres/log-store.ts";
import { createLogCheckpoints } from "../../api/adapters/postgres/served-checkpoints.ts";
import { createWitnessStore } from "../../api/adapters/postgres/witness-store.ts";
import type { LoggedEntry } from "../../api/log/log-store.ts";
import { createProveEntry } from "../../api/log/prove-entries.ts";
import { cosign } from "../../packages/verifier/src/tlog/cosignature.ts";
import { parseNote } from "../../packages/verifier/src/tlog/note.ts";
import { consistencyProof } from "../../packages/verifier/src/tlog/tree.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantApiRole, startPostgres } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { witnessSigner } from "../../test/support/log/note-keys.ts";
import { storeLog } from "../../test/support/log/stored-log.ts";

const OLD_SIZE = 65_535;
const SIZE = 70_000;
/** When the witness cosigns. */
const SECONDS = 1_790_000_000;
const COMMAND = fileURLToPath(new URL("../../scripts/log-export.ts", import.meta.url));
const witness = witnessSigner("witness.example/w", 2);
const entries = Array.from({ length: SIZE }, (_, at) => Buffer.from(`entry ${at}`));

async function exported(urls: { readonly ownerUrl: string; readonly apiUrl: string }): Promise<void> {
  const log = await storeLog(urls, "trust.example/log");
  const pool = connect(urls.apiUrl, 4);
  try {
    const store = createLogStore(pool);
    const witnesses = createWitnessStore(pool);
    const policy = { witnesses: [{ key: witness.key, submission: "", monitoring: "" }], quorum: 1, waitMs: 0 };
    const checkpoints = createLogCheckpoints({ pool, store, witnesses, policy });
    const grow = async (from: number, to: number) => {
      await log.grow(entries.slice(from, to).map((entry, at) => ({ type: "policy", ref: `${from + at}`, entry })));
      const newest = await store.newest(1);
      const line = await cosign(parseNote(newest?.note ?? "").text, witness, SECONDS);
      const { name: keyName, id: keyId, vkey } = witness.key;
      await witnesses.accept({ generation: 1, vkey }, to, [{ keyName, keyId, line, seconds: SECONDS }]);
      const env = {
        ...process.env,
        DATABASE_URL: urls.apiUrl,
        LOG_WITNESSES: `${vkey} http://127.0.0.1:9`,
        LOG_QUORUM: "1",
      };
      console.log((await promisify(execFile)(process.execPath, [COMMAND, "exported"], { env })).stdout.trim());
    };
    await grow(0, OLD_SIZE);
    await writeFile("old.txt", (await checkpoints.served(1))?.note ?? "");
    await grow(OLD_SIZE, SIZE);
    await writeFile("vkey.txt", log.vkey);
    await writeFile("wkey.txt", witness.key.vkey);
    const prove = createProveEntry({ store, checkpoints, elapsedMs: () => performance.now() });
    await writeFile("65537.tlog-proof", await prove((await store.at(1, 65_537)) as LoggedEntry));
    const proof = await consistencyProof(OLD_SIZE, SIZE, async (ids) =>
      (await store.tiles(1, ids)).map((tile) => tile ?? new Uint8Array()),
    );
    await writeFile("consistency.txt", proof.map((hash) => `${Buffer.from(hash).toString("base64")}\n`).join(""));
  } finally {
    await pool.end();
  }
}

const folder = await mkdtemp(join(tmpdir(), "log-interop-"));
// PostgreSQL does not run as root: it is another user who reads here then.
await chmod(folder, 0o755);
const postgres = await startPostgres({ directory: join(folder, "postgres"), port: await freePort() });
try {
  await migrate(postgres.ownerUrl);
  await grantApiRole(postgres.ownerUrl);
  await exported(postgres);
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
