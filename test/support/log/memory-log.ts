import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { growTiles } from "../../../packages/verifier/src/tlog/grow.ts";
import { EMPTY_ROOT, HASH_SIZE, leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { cosign, type NoteSigner, signNote } from "../../../packages/verifier/src/tlog/note.ts";
import {
  entriesPath,
  formatBundle,
  levelWidth,
  type ReadTiles,
  TILE_WIDTH,
  type TileId,
  tilePath,
  tileWidth,
} from "../../../packages/verifier/src/tlog/tile.ts";
import { formatProof } from "../../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../../packages/verifier/src/tlog/tree.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";

/** A tree with its tiles in memory, which grows like a log's. */
export class MemoryTree {
  size = 0;
  root: Uint8Array = EMPTY_ROOT;
  readonly #tiles = new Map<string, Uint8Array>();
  #edge: ReadonlyMap<number, Uint8Array> = new Map();

  /** Appends leaves, given by their hashes. */
  append(leaves: readonly Uint8Array[]): void {
    const { size, root, tiles, edge } = growTiles({ size: this.size, edge: this.#edge, leaves });
    for (const { level, n, hashes } of tiles) this.#tiles.set(`${level}/${n}`, hashes);
    this.size = size;
    this.root = root;
    this.#edge = edge;
  }

  /** The first `width` hashes of a tile. @throws Error if it has fewer */
  tile({ level, n, width }: TileId): Uint8Array {
    const hashes = this.#tiles.get(`${level}/${n}`) ?? new Uint8Array();
    if (hashes.length < width * HASH_SIZE) throw new Error(`the tree has no tile ${level}/${n} of width ${width}`);
    return hashes.subarray(0, width * HASH_SIZE);
  }

  readonly read: ReadTiles = async (ids) => ids.map((id) => this.tile(id));
}

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 6962, section 2.1, implemented literally, without tiles or caching. */
export function naiveRoot(entries: readonly Uint8Array[]): Buffer {
  const [first] = entries;
  if (first === undefined) return sha256();
  if (entries.length === 1) return sha256(Buffer.of(0), first);
  let split = 1;
  while (split * 2 < entries.length) split *= 2;
  return sha256(Buffer.of(1), naiveRoot(entries.slice(0, split)), naiveRoot(entries.slice(split)));
}

/** One of our logs in memory, which can be written to a folder as the static files of C2SP tlog-tiles. */
export class FolderLog {
  readonly entries: Uint8Array[] = [];
  readonly tree = new MemoryTree();
  readonly log: NoteSigner;
  readonly #witnesses: readonly NoteSigner[];

  constructor(log: NoteSigner, ...witnesses: readonly NoteSigner[]) {
    this.log = log;
    this.#witnesses = witnesses;
  }

  append(...entries: readonly Uint8Array[]): void {
    for (const entry of entries) this.entries.push(entry);
    this.tree.append(entries.map(leafHash));
  }

  /** The signed checkpoint, with a cosignature of each witness. */
  async checkpoint(): Promise<string> {
    const text = formatCheckpoint({ origin: this.log.key.name, size: this.tree.size, root: this.tree.root });
    const cosignatures = this.#witnesses.map((witness) => cosign(text, witness, 1_790_000_000));
    return `${await signNote(text, this.log)}${(await Promise.all(cosignatures)).join("")}`;
  }

  async proof(index: number): Promise<string> {
    const hashes = await inclusionProof(index, this.tree.size, this.tree.read);
    return formatProof({ index, hashes, checkpoint: await this.checkpoint(), extra: this.entries[index] });
  }

  async write(folder: string): Promise<void> {
    const put = async (path: string, content: string | Uint8Array) => {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    };
    const { size } = this.tree;
    for (let level = 0; levelWidth(size, level) > 0; level++) {
      for (let n = 0; tileWidth(size, level, n) > 0; n++) {
        const id = { level, n, width: tileWidth(size, level, n) };
        await put(tilePath(id), this.tree.tile(id));
        if (level === 0)
          await put(entriesPath(n, id.width), formatBundle(this.entries.slice(n * TILE_WIDTH, (n + 1) * TILE_WIDTH)));
      }
    }
    await put("checkpoint", await this.checkpoint());
  }
}

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** An Ed25519 signer of notes, a log's by default. Its seed is one byte repeated 32 times. */
export function noteSigner(name: string, seed: number, type: 0x01 | 0x04 = NOTE_TYPE.ed25519): NoteSigner {
  const der = Buffer.concat([PKCS8, Buffer.alloc(32, seed)]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const publicKey = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  return { key: verifierKey(name, type, publicKey), sign: (message) => sign(null, message, privateKey) };
}

/** The same for a witness. */
export const witnessSigner = (name: string, seed: number): NoteSigner => noteSigner(name, seed, NOTE_TYPE.cosignature);

/** A proof's parts, parsed without our code: C2SP tlog-proof, line by line. */
export function readProof(text: string) {
  const [head = "", ...rest] = text.split("\n\n");
  const [magic, extra = "", index = "", ...hashes] = head.split("\n");
  return {
    magic,
    entry: Buffer.from(extra.replace(/^extra /, ""), "base64"),
    index: Number(index.replace(/^index /, "")),
    hashes: hashes.map((hash) => Buffer.from(hash, "base64")),
    checkpoint: rest.join("\n\n"),
  };
}
