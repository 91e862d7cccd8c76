import { generateKeyPairSync, sign } from "node:crypto";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { type Edge, type Growth, growTiles } from "../../../packages/verifier/src/tlog/grow.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { signNote } from "../../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import type { TestDatabase } from "../service/database.ts";

export interface StoredEntry {
  readonly type: EntryType;
  readonly ref: string;
  readonly entry: Buffer;
}

export interface StoredLog {
  readonly origin: string;
  readonly vkey: string;
  /** Appends as many entries with their tiles, and a checkpoint of the tree that they make. */
  readonly grow: (added: readonly StoredEntry[]) => Promise<void>;
  /** Lets the tree go on by so many leaves whose entries are not stored, for tests of large trees. */
  readonly pad: (leaves: number) => void;
}

/** A log in the tables of the service, as its integrator writes it, with a key of the test's own. */
export async function storeLog(database: TestDatabase, origin: string, generation = 1): Promise<StoredLog> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const bytes = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const key = verifierKey(origin, NOTE_TYPE.ed25519, bytes);
  const query = (text: string, values: unknown[]) =>
    withClient(database.ownerUrl, (client) => client.query(text, values));
  await query("INSERT INTO log (generation, origin, vkey) VALUES ($1, $2, $3)", [generation, origin, key.vkey]);
  let tree: { readonly size: number; readonly edge: Edge } = { size: 0, edge: new Map() };
  let tilesToStore: Growth["tiles"] = [];
  return {
    origin,
    vkey: key.vkey,
    pad(leaves) {
      const grown = growTiles({ ...tree, leaves: Array.from({ length: leaves }, () => NO_ENTRY) });
      tilesToStore = grown.tiles;
      tree = grown;
    },
    async grow(added) {
      const grown = growTiles({ ...tree, leaves: added.map(({ entry }) => leafHash(entry)) });
      const { size, root } = grown;
      const tiles = newest([...tilesToStore, ...grown.tiles]);
      tilesToStore = [];
      const text = formatCheckpoint({ origin, size, root });
      const note = await signNote(text, { key, sign: (message) => sign(null, message, privateKey) });
      await query(
        `INSERT INTO log_entry (generation, idx, type, ref, entry)
         SELECT $1, $2::bigint + place - 1, type, ref, entry
         FROM unnest($3::text[], $4::text[], $5::bytea[]) WITH ORDINALITY AS one (type, ref, entry, place)`,
        [
          generation,
          tree.size,
          added.map(({ type }) => type),
          added.map(({ ref }) => ref),
          added.map(({ entry }) => entry),
        ],
      );
      await query(
        `INSERT INTO log_tile (generation, level, n, hashes)
         SELECT $1, level, n, hashes FROM unnest($2::smallint[], $3::bigint[], $4::bytea[]) AS one (level, n, hashes)
         ON CONFLICT (generation, level, n) DO UPDATE SET hashes = excluded.hashes`,
        [
          generation,
          tiles.map(({ level }) => level),
          tiles.map(({ n }) => n),
          tiles.map(({ hashes }) => Buffer.from(hashes)),
        ],
      );
      await query("INSERT INTO log_checkpoint (generation, size, root, note) VALUES ($1, $2, $3, $4)", [
        generation,
        size,
        Buffer.from(root),
        note,
      ]);
      tree = grown;
    },
  };
}

const NO_ENTRY = leafHash(new Uint8Array());

/** Each tile once, as it became last. */
const newest = (tiles: Growth["tiles"]): Growth["tiles"] => [
  ...new Map(tiles.map((tile) => [`${tile.level} ${tile.n}`, tile])).values(),
];
