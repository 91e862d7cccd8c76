import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EMPTY_ROOT, leafHash, nodeHash } from "../../../../packages/verifier/src/tlog/hash.ts";
import { entriesPath, parseTilePath, tilePath, tileWidth } from "../../../../packages/verifier/src/tlog/tile.ts";
import {
  consistencyProof,
  inclusionProof,
  rootHash,
  verifyConsistency,
  verifyInclusion,
} from "../../../../packages/verifier/src/tlog/tree.ts";
import { MemoryTree } from "../../../support/log/memory-log.ts";

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 6962, section 2.1, implemented literally with only node:crypto, as the reference for the library. */
class NaiveTree {
  readonly #leaves: readonly Uint8Array[];
  readonly #known = new Map<string, Buffer>();

  constructor(leaves: readonly Uint8Array[]) {
    this.#leaves = leaves;
  }

  static leaf(entry: Uint8Array): Buffer {
    return sha256(Uint8Array.of(0), entry);
  }

  /** MTH(D[from:to]) */
  root(from: number, to: number): Buffer {
    const n = to - from;
    if (n === 0) return sha256();
    if (n === 1) return Buffer.from(this.#leaves[from] as Uint8Array);
    const name = `${from}:${to}`;
    const found = this.#known.get(name);
    if (found !== undefined) return found;
    const k = largestPowerBelow(n);
    const root = sha256(Uint8Array.of(1), this.root(from, from + k), this.root(from + k, to));
    this.#known.set(name, root);
    return root;
  }

  /** PATH(m, D[from:to]) */
  path(m: number, from: number, to: number): readonly Buffer[] {
    const n = to - from;
    if (n === 1) return [];
    const k = largestPowerBelow(n);
    if (m < k) return [...this.path(m, from, from + k), this.root(from + k, to)];
    return [...this.path(m - k, from + k, to), this.root(from, from + k)];
  }

  /** SUBPROOF(m, D[from:to], b); PROOF(m, D[n]) is SUBPROOF(m, D[0:n], true) */
  subproof(m: number, [from, to]: readonly [number, number], b: boolean): readonly Buffer[] {
    const n = to - from;
    if (m === n) return b ? [] : [this.root(from, to)];
    const k = largestPowerBelow(n);
    if (m <= k) return [...this.subproof(m, [from, from + k], b), this.root(from + k, to)];
    return [...this.subproof(m - k, [from + k, to], false), this.root(from, from + k)];
  }
}

const largestPowerBelow = (n: number): number => 2 ** Math.ceil(Math.log2(n) - 1);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytes = (text: string): Uint8Array => Buffer.from(text, "hex");

describe("the vectors of the reference implementation of RFC 6962", () => {
  const ENTRIES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
  const ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
  ];
  const A = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
  const B = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
  const C = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";
  const D = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
  const E = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
  const F = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
  const [, ONE = "", TWO = "", , FOUR = ""] = ROOTS;
  const tree = new MemoryTree();
  tree.append(ENTRIES.map((entry) => leafHash(bytes(entry))));

  test("The roots match the vectors", async () => {
    const roots = await Promise.all(ROOTS.map((_, size) => rootHash(size, tree.read)));
    expect(roots.map(hex)).toEqual(ROOTS);
    expect(hex(EMPTY_ROOT)).toBe(ROOTS[0]);
  });

  test.each([
    [0, 1, []],
    [0, 8, [A, B, C]],
    [5, 8, [D, E, FOUR]],
    [2, 3, [TWO]],
    [1, 5, [ONE, B, D]],
  ])("The inclusion proof of entry %i in %i matches the vectors", async (index, size, proof) => {
    expect((await inclusionProof(index, size, tree.read)).map(hex)).toEqual(proof);
  });

  test.each([
    [1, 1, []],
    [1, 8, [A, B, C]],
    [6, 8, [F, E, FOUR]],
    [2, 5, [B, D]],
  ])("The consistency proof from %i to %i matches the vectors", async (oldSize, newSize, proof) => {
    expect((await consistencyProof(oldSize, newSize, tree.read)).map(hex)).toEqual(proof);
  });
});

/** Reproducible leaves: the hash of each number. */
const LEAVES = Array.from({ length: 65_793 }, (_, at) => NaiveTree.leaf(Buffer.from(String(at))));
const naive = new NaiveTree(LEAVES);
const grown = new MemoryTree();
grown.append(LEAVES);
const BORDERS = [1, 2, 3, 255, 256, 257, 511, 512, 513, 65_279, 65_280, 65_535, 65_536, 65_537, 65_792, 65_793];
const sizes = fc.oneof(fc.constantFrom(...BORDERS), fc.integer({ min: 1, max: LEAVES.length }));
const RUNS = { numRuns: 60 };

describe("a tiled tree compared with RFC 6962's definition", () => {
  test.each([0, ...BORDERS])("A tree that grows in one step to %i entries has the same root", async (size) => {
    const tree = new MemoryTree();
    tree.append(LEAVES.slice(0, size));
    expect(hex(tree.root)).toBe(hex(naive.root(0, size)));
    expect(hex(await rootHash(size, grown.read))).toBe(hex(tree.root));
  });

  test("A tree that grows in steps of any length from its edge alone has the same root", () => {
    const steps = fc.array(fc.oneof(fc.constantFrom(0, 1, 255, 256, 257), fc.nat(700)), { maxLength: 12 });
    fc.assert(
      fc.property(fc.constantFrom(0, 255, 256, 65_023), steps, (start, lengths) => {
        const tree = new MemoryTree();
        tree.append(LEAVES.slice(0, start));
        for (const length of lengths) {
          tree.append(LEAVES.slice(tree.size, tree.size + length));
          expect(hex(tree.root)).toBe(hex(naive.root(0, tree.size)));
        }
      }),
      { numRuns: 12 },
    );
  });

  test("Inclusion proofs equal PATH and are valid for nothing else", async () => {
    const places = sizes.chain((size) => fc.tuple(fc.nat(size - 1), fc.constant(size)));
    await fc.assert(
      fc.asyncProperty(places, fc.nat(255), async ([index, size], noise) => {
        const proof = await inclusionProof(index, size, grown.read);
        expect(proof.map(hex)).toEqual(naive.path(index, 0, size).map(hex));
        const claim = { index, size, leaf: LEAVES[index] as Uint8Array, root: naive.root(0, size), proof };
        verifyInclusion(claim);
        const lies = [
          { ...claim, index: index + 1 },
          { ...claim, leaf: nodeHash(claim.leaf, claim.leaf) },
          { ...claim, root: flipped(claim.root, noise) },
          { ...claim, proof: [...proof, claim.root] },
          ...(proof.length === 0
            ? []
            : [
                { ...claim, proof: proof.slice(1) },
                { ...claim, proof: proof.slice(0, -1) },
              ]),
          ...proof.map((hash, at) => ({ ...claim, proof: proof.with(at, flipped(hash, noise)) })),
        ];
        for (const lie of lies) expect(() => verifyInclusion(lie)).toThrow(/inclusion proof|has no entry/);
      }),
      RUNS,
    );
  });

  test("Consistency proofs equal PROOF and are valid for nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(sizes, sizes, fc.nat(255), async (one, other, noise) => {
        const [oldSize, newSize] = [Math.min(one, other), Math.max(one, other)];
        const proof = await consistencyProof(oldSize, newSize, grown.read);
        expect(proof.map(hex)).toEqual(naive.subproof(oldSize, [0, newSize], true).map(hex));
        const claim = { oldSize, newSize, oldRoot: naive.root(0, oldSize), newRoot: naive.root(0, newSize), proof };
        verifyConsistency(claim);
        const lies = [
          { ...claim, oldRoot: flipped(claim.oldRoot, noise) },
          { ...claim, newRoot: flipped(claim.newRoot, noise) },
          { ...claim, proof: [...proof, claim.newRoot] },
          { ...claim, oldSize: newSize + 1 },
          ...(proof.length === 0
            ? []
            : [
                { ...claim, proof: proof.slice(0, -1) },
                { ...claim, proof: [] },
              ]),
          ...proof.map((hash, at) => ({ ...claim, proof: proof.with(at, flipped(hash, noise)) })),
        ];
        for (const lie of lies)
          expect(() => verifyConsistency(lie)).toThrow(/consistency proof|roots|not the beginning/);
      }),
      RUNS,
    );
  });

  test("Every tree extends the empty tree, which has one root", () => {
    const claim = { oldSize: 0, oldRoot: EMPTY_ROOT, newSize: 2, newRoot: naive.root(0, 2), proof: [] };
    verifyConsistency(claim);
    expect(() => verifyConsistency({ ...claim, oldRoot: naive.root(0, 1) })).toThrow(/different roots/);
    expect(() => verifyConsistency({ ...claim, proof: [EMPTY_ROOT] })).toThrow(/should be empty/);
  });

  test("A proof requests all its tiles in one call, each once, and only tiles that the tree has", async () => {
    const asked: string[][] = [];
    await inclusionProof(65_537, 65_793, (ids) => {
      asked.push(ids.map(tilePath));
      return grown.read(ids);
    });
    expect(asked.map((paths) => paths.toSorted())).toEqual([["tile/0/256", "tile/0/257.p/1", "tile/2/000.p/1"]]);
  });

  test("A tile of another length is an error", async () => {
    await expect(rootHash(3, async () => [new Uint8Array(64)])).rejects.toThrow("should have 96 bytes, and has 64");
    await expect(rootHash(3, async () => [])).rejects.toThrow("has none");
    expect(() => new MemoryTree().append([new Uint8Array(31)])).toThrow("31 bytes");
  });

  test("Sizes and indexes that are too large or out of order are refused", async () => {
    await expect(inclusionProof(3, 3, grown.read)).rejects.toThrow(RangeError);
    await expect(consistencyProof(4, 3, grown.read)).rejects.toThrow(RangeError);
    await expect(rootHash(2 ** 53, grown.read)).rejects.toThrow(RangeError);
  });
});

function flipped(hash: Uint8Array, bit: number): Uint8Array {
  const other = Uint8Array.from(hash);
  other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return other;
}

test.each([
  [{ level: 0, n: 0, width: 256 }, "tile/0/000"],
  [{ level: 0, n: 1_067, width: 12 }, "tile/0/x001/067.p/12"],
  [{ level: 1, n: 1_234_067, width: 256 }, "tile/1/x001/x234/067"],
  [{ level: 63, n: 999, width: 255 }, "tile/63/999.p/255"],
  [{ level: 2, n: 1_000, width: 1 }, "tile/2/x001/000.p/1"],
  [{ level: 0, n: 2 ** 45 - 1, width: 256 }, "tile/0/x035/x184/x372/x088/831"],
])("Tile %j has the path %s", (id, path) => {
  expect(tilePath(id)).toBe(path);
  expect(parseTilePath(path)).toEqual(id);
});

test("Entry bundles have their own paths", () => {
  expect(entriesPath(1_067, 12)).toBe("tile/entries/x001/067.p/12");
  expect(entriesPath(0)).toBe("tile/entries/000");
  expect(parseTilePath("tile/entries/x001/067.p/12")).toEqual({ entries: true, n: 1_067, width: 12 });
});

test.each([
  "",
  "tile/0/0",
  "tile/0/0000",
  "tile/0/001/067",
  "tile/0/x001/x067",
  "tile/0/x000/067",
  "tile/0/X001/067",
  "tile/0/000/",
  "/tile/0/000",
  "tile/00/000",
  "tile/64/000",
  "tile/data/000",
  "tile/0/000.p/",
  "tile/0/000.p/0",
  "tile/0/000.p/01",
  "tile/0/000.p/256",
  "tile/0/000.p/1000",
  "tile/0/000\n",
  "tile/0/x035/x184/x372/x088/832",
  "tile/0/x001/x000/x000/x000/x000/x000/000",
])("The text %j is not a tile path", (path) => {
  expect(parseTilePath(path)).toBeNull();
});

test("A tree of 70,000 entries has the tiles that the specification counts", () => {
  expect([272, 273, 274].map((n) => tileWidth(70_000, 0, n))).toEqual([256, 112, -144]);
  expect([0, 1].map((n) => tileWidth(70_000, 1, n))).toEqual([256, 17]);
  expect(tileWidth(70_000, 2, 0)).toBe(1);
});
