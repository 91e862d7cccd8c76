import { generateKeyPairSync, randomInt, sign } from "node:crypto";
import { availableParallelism, loadavg } from "node:os";
import { connect } from "../../api/adapters/postgres/connection.ts";
import { createLogStore } from "../../api/adapters/postgres/log-store.ts";
import { createLogCheckpoints } from "../../api/adapters/postgres/served-checkpoints.ts";
import { createWitnessStore } from "../../api/adapters/postgres/witness-store.ts";
import { createProveEntry } from "../../api/log/prove-entries.ts";
import { formatCheckpoint } from "../../packages/verifier/src/tlog/checkpoint.ts";
import { type Growth, growTiles } from "../../packages/verifier/src/tlog/grow.ts";
import { leafHash } from "../../packages/verifier/src/tlog/hash.ts";
import { signNote } from "../../packages/verifier/src/tlog/note.ts";
import { parseProof } from "../../packages/verifier/src/tlog/tlog-proof.ts";
import { verifyInclusion } from "../../packages/verifier/src/tlog/tree.ts";
import { NOTE_TYPE, verifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";
import { type Postgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { percentile } from "../programs.ts";

const SIZE = 1_000_000;
const PROOFS = 1_000;
const WARM = 100;
const TILES_AT_ONCE = 500;
const NAME = "bench_tree";
const ORIGIN = "trust.example/log";
/** As large as a certificate's usually is. */
const ENTRY_BYTES = 1_600;

function entryAt(index: number): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES, 0x61);
  entry.writeUInt32BE(index);
  return entry;
}

/** p99 in milliseconds of making a proof, its text included, with tiles read from PostgreSQL each time. */
export async function proofs(database: Pick<Postgres, "ownerUrl" | "apiUrl">): Promise<number> {
  const inTree = (url: string) => url.replace(/[^/]+$/, NAME);
  await withClient(database.ownerUrl, (owner) => owner.query(`CREATE DATABASE ${NAME}`));
  const [ownerUrl, apiUrl] = [inTree(database.ownerUrl), inTree(database.apiUrl)];
  await migrate(ownerUrl);
  const root = await fill(ownerUrl);
  const pool = connect(apiUrl);
  try {
    const store = createLogStore(pool);
    const policy = { witnesses: [], quorum: 0, waitMs: 0 };
    const checkpoints = createLogCheckpoints({ pool, store, witnesses: createWitnessStore(pool), policy });
    const prove = createProveEntry({ store, checkpoints, elapsedMs: () => performance.now() });
    const times: number[] = [];
    const made: { readonly index: number; readonly leaf: Uint8Array; readonly text: string }[] = [];
    let before = process.cpuUsage();
    for (let n = -WARM; n < PROOFS; n++) {
      if (n === 0) before = process.cpuUsage();
      const index = randomInt(SIZE);
      const entry = entryAt(index);
      const started = performance.now();
      const text = await prove({ type: "certificate", ref: "", generation: 1, index, entry, at: new Date() });
      if (n >= 0) times.push(performance.now() - started);
      made.push({ index, leaf: leafHash(entry), text });
    }
    const { user, system } = process.cpuUsage(before);
    for (const { index, leaf, text } of made)
      verifyInclusion({ index, size: SIZE, leaf, root, proof: parseProof(text).hashes });
    const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
    console.log(`${PROOFS} proofs of random entries among ${SIZE}, one after the other, each of them checked`);
    const own = (user + system) / 1_000 / PROOFS;
    console.log(`  p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${own.toFixed(2)} ms of processor time each`);
    console.log(`  load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors`);
    return p99;
  } finally {
    await pool.end();
  }
}

/** Stores the tree, and says what its tiles take. Returns its root. */
async function fill(ownerUrl: string): Promise<Uint8Array> {
  const leaves = Array.from({ length: SIZE }, (_, index) => leafHash(entryAt(index)));
  const { tiles, root } = growTiles({ size: 0, edge: new Map(), leaves });
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const bytes = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const key = verifierKey(ORIGIN, NOTE_TYPE.ed25519, bytes);
  const text = formatCheckpoint({ origin: ORIGIN, size: SIZE, root });
  const note = await signNote(text, { key, sign: (message) => sign(null, message, privateKey) });
  await withClient(ownerUrl, async (owner) => {
    await owner.query("INSERT INTO log (generation, origin, vkey) VALUES (1, $1, $2)", [ORIGIN, key.vkey]);
    for (let at = 0; at < tiles.length; at += TILES_AT_ONCE)
      await owner.query(
        "INSERT INTO log_tile (generation, level, n, hashes) SELECT 1, * FROM unnest($1::smallint[], $2::bigint[], $3::bytea[])",
        columns(tiles.slice(at, at + TILES_AT_ONCE)),
      );
    await owner.query("INSERT INTO log_checkpoint (generation, size, root, note) VALUES (1, $1, $2, $3)", [
      SIZE,
      Buffer.from(root),
      note,
    ]);
    await owner.query("VACUUM (ANALYZE) log_tile");
    const { rows } = await owner.query(
      "SELECT sum(length(hashes))::float8 AS bytes, pg_total_relation_size('log_tile')::float8 AS stored FROM log_tile",
    );
    const each = (count: number) => (count / SIZE).toFixed(2);
    console.log(`tiles' bytes an entry at ${SIZE}: ${each(rows[0].bytes)}, and ${each(rows[0].stored)} in PostgreSQL`);
  });
  return root;
}

const columns = (tiles: Growth["tiles"]) => [
  tiles.map(({ level }) => level),
  tiles.map(({ n }) => n),
  tiles.map(({ hashes }) => Buffer.from(hashes)),
];
