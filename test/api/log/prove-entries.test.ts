import { describe, expect, test } from "vitest";
import { createProveEntry } from "../../../api/log/prove-entries.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { MemoryTree, readProof } from "../../support/log/memory-log.ts";

const SIZE = 300;
const tree = new MemoryTree();
tree.append(Array.from({ length: SIZE }, (_, at) => leafHash(Buffer.of(at >> 8, at & 255))));
const store = { tiles: async (_: number, ids: Parameters<typeof tree.read>[0]) => tree.read(ids) };
const BARE = "log\n300\nroot\n\n\u2014 log AAAA\n";
const COSIGNED = `${BARE}\u2014 w AAAA\n`;
const newest = { size: SIZE, root: tree.root, note: BARE, at: new Date(0) };
const entryAt = (index: number) =>
  ({ type: "certificate", ref: "", generation: 1, index, entry: Buffer.of(1), at: new Date(0) }) as const;

let now = 0;
/** Proves with checkpoints that are read one after the other, and says how many were. */
function prover(quorum: number, notes: readonly string[], sizes: readonly number[] = []) {
  let read = 0;
  const proving = async () => ({ ...newest, note: notes[read] ?? BARE, size: sizes[read++] ?? SIZE });
  const prove = createProveEntry({ store, checkpoints: { proving, quorum }, elapsedMs: () => now });
  return { taken: async (index: number) => readProof(await prove(entryAt(index))).checkpoint, read: () => read };
}

describe("a proof", () => {
  test("takes a checkpoint that another one took in the last quarter of a second", async () => {
    now = 0;
    const { taken, read } = prover(0, [BARE, COSIGNED]);
    expect([await taken(100), read()]).toEqual([BARE, 1]);
    now = 249;
    expect([await taken(100), read()]).toEqual([BARE, 1]);
    now = 250;
    expect([await taken(100), read()]).toEqual([COSIGNED, 2]);
  });

  test("takes none that waits for its witnesses because another one did", async () => {
    now = 0;
    const { taken, read } = prover(1, [BARE, BARE, COSIGNED]);
    expect([await taken(1), await taken(1), await taken(1), await taken(1)]).toEqual([BARE, BARE, COSIGNED, COSIGNED]);
    expect(read()).toBe(3);
  });

  test("takes none that is too small for its entry", async () => {
    now = 0;
    const { taken, read } = prover(0, [], [150, SIZE]);
    await taken(100);
    await taken(200);
    expect(read()).toBe(2);
    await expect(prover(0, [], [200]).taken(200)).rejects.toThrow("no checkpoint covers entry 200");
  });
});
