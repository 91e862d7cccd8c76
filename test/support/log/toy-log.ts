import { toBase64 } from "../../../packages/verifier/src/tlog/base64.ts";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { growTiles } from "../../../packages/verifier/src/tlog/grow.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { type NoteSigner, signNote } from "../../../packages/verifier/src/tlog/note.ts";
import type { TileId } from "../../../packages/verifier/src/tlog/tile.ts";
import { consistencyProof, rootHash } from "../../../packages/verifier/src/tlog/tree.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";

/** A log of texts in memory, with its own key. */
export interface ToyLog {
  readonly origin: string;
  readonly signer: NoteSigner;
  readonly rootAt: (size: number) => Promise<Uint8Array>;
  readonly checkpointAt: (size: number) => Promise<string>;
  readonly tiles: (ids: readonly TileId[]) => Promise<readonly Uint8Array[]>;
  readonly proof: (from: number, to: number) => Promise<readonly Uint8Array[]>;
  /** The body of `add-checkpoint`. */
  readonly offer: (from: number, to: number) => Promise<string>;
}

/** Logs with the same beginning of their entries are one log until they differ. */
export async function toyLog(origin: string, entries: readonly string[], seed = Buffer.alloc(32, 7)): Promise<ToyLog> {
  const signer = await noteSigner(origin, "log", seed);
  const leaves = entries.map((text) => leafHash(Buffer.from(text)));
  const { tiles } = growTiles({ size: 0, edge: new Map(), leaves });
  const read = async (ids: readonly TileId[]) =>
    ids.map(({ level, n, width }) => {
      const found = tiles.find((tile) => tile.level === level && tile.n === n);
      return (found?.hashes ?? new Uint8Array()).subarray(0, width * 32);
    });
  const rootAt = (size: number) => rootHash(size, read);
  const checkpointAt = async (size: number) =>
    signNote(formatCheckpoint({ origin, size, root: await rootAt(size) }), signer);
  const proof = (from: number, to: number) => consistencyProof(from, to, read);
  return {
    origin,
    signer,
    rootAt,
    checkpointAt,
    tiles: read,
    proof,
    offer: async (from, to) => offerOf(from, await proof(from, to), await checkpointAt(to)),
  };
}

export const offerOf = (oldSize: number, proof: readonly Uint8Array[], checkpoint: string): string =>
  `old ${oldSize}\n${proof.map((hash) => `${toBase64(hash)}\n`).join("")}\n${checkpoint}`;

/** So many entries; `fork` names those of another history from there on. */
export const texts = (count: number, fork?: { readonly at: number }): readonly string[] =>
  Array.from({ length: count }, (_, index) => (fork && index >= fork.at ? `forked ${index}` : `entry ${index}`));
