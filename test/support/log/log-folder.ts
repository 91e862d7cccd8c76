import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { cosign } from "../../../packages/verifier/src/tlog/cosignature.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { type NoteSigner, signNote } from "../../../packages/verifier/src/tlog/note.ts";
import { entriesPath, levelWidth, TILE_WIDTH, tilePath, tileWidth } from "../../../packages/verifier/src/tlog/tile.ts";
import { formatProof } from "../../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../../packages/verifier/src/tlog/tree.ts";
import { MemoryTree } from "./memory-tree.ts";

/** A log of ours in memory, which can be written to a folder as the static files of C2SP tlog-tiles. */
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
          await put(entriesPath(n, id.width), bundle(this.entries.slice(n * TILE_WIDTH, (n + 1) * TILE_WIDTH)));
      }
    }
    await put("checkpoint", await this.checkpoint());
  }
}

const bundle = (entries: readonly Uint8Array[]): Buffer =>
  Buffer.concat(entries.flatMap((entry) => [Buffer.from([entry.length >> 8, entry.length & 0xff]), entry]));
