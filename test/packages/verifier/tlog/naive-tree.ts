import { createHash } from "node:crypto";

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 6962, section 2.1, word by word and with node:crypto only: what the library is compared with. */
export class NaiveTree {
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
