import { generateKeyPairSync, sign } from "node:crypto";
import { createLogWriter } from "../../../api/log/write-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { type Growth, growTiles } from "../../../packages/verifier/src/tlog/grow.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { signNote } from "../../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { forFile } from "../for-file.ts";
import type { TestDatabase } from "../service/database.ts";

export interface StoredEntry {
  readonly type: EntryType;
  readonly ref: string;
  readonly entry: Buffer;
}

/** A log in the service's tables, with the test's own key. */
export async function storeLog(database: TestDatabase, origin: string, generation = 1) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const bytes = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const key = verifierKey(origin, NOTE_TYPE.ed25519, bytes);
  const writer = createLogWriter(await forFile(connect(database.apiUrl)), {});
  await writer.begin({ generation, origin, vkey: key.vkey });
  let tree: Pick<Growth, "size" | "edge"> = { size: 0, edge: new Map() };
  let tilesToStore: Growth["tiles"] = [];
  return {
    origin,
    vkey: key.vkey,
    /** Grows the tree by leaves whose entries are not stored, for tests of large trees. */
    pad(leaves: number): void {
      const grown = growTiles({ ...tree, leaves: Array.from({ length: leaves }, () => NO_ENTRY) });
      tilesToStore = grown.tiles;
      tree = grown;
    },
    /** Appends these entries with their tiles, and a checkpoint of the resulting tree. */
    async grow(added: readonly StoredEntry[]): Promise<void> {
      const { size } = tree;
      const grown = growTiles({ ...tree, leaves: added.map(({ entry }) => leafHash(entry)) });
      const text = formatCheckpoint({ origin, size: grown.size, root: grown.root });
      const note = await signNote(text, { key, sign: (message) => sign(null, message, privateKey) });
      const done = await writer.inTurn(generation, async (turn) => {
        const entries = added.map((one, place) => ({ ...one, index: size + place }));
        await turn.append(entries, []);
        await turn.publish({ ...grown, tiles: newest([...tilesToStore, ...grown.tiles]) }, note);
        return true;
      });
      if (done !== true) throw new Error("another process has the log's turn");
      tilesToStore = [];
      tree = grown;
    },
  };
}

const NO_ENTRY = leafHash(new Uint8Array());

/** Each tile once, in its last version. */
const newest = (tiles: Growth["tiles"]): Growth["tiles"] => [
  ...new Map(tiles.map((tile) => [`${tile.level} ${tile.n}`, tile])).values(),
];
