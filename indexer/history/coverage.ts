import { basename } from "node:path";

/** The blocks that a fetched file covers. They are in its name, because blocks without a transfer leave no other trace. */
export interface Coverage {
  /** The UTC day of its blocks. */
  readonly day: string;
  readonly firstBlock: number;
  readonly lastBlock: number;
  /** The hashes of the block before the first, and of the last block, as `shortHash` shortens them. */
  readonly parentHash: string;
  readonly lastHash: string;
}

export type FetchedFile = Coverage & { readonly file: string };

const NAME = /^(\d{4}-\d\d-\d\d)-(\d+)-(\d+)-([0-9a-f]{16})-([0-9a-f]{16})\.csv\.gz$/;

/** A block's hash, shortened for a file's name. */
export const shortHash = (hash: string): string => hash.slice(2, 18);

export const nameOf = ({ day, firstBlock, lastBlock, parentHash, lastHash }: Coverage): string =>
  `${[day, firstBlock, lastBlock, parentHash, lastHash].join("-")}.csv.gz`;

/** Null if the file was not fetched by `npm run index:fetch`, or was renamed. */
export function coverageOf(file: string): FetchedFile | null {
  const [, day, first, last, parentHash, lastHash] = NAME.exec(basename(file)) ?? [];
  if (day === undefined || parentHash === undefined || lastHash === undefined) return null;
  return { file, day, firstBlock: Number(first), lastBlock: Number(last), parentHash, lastHash };
}

export const inOrder = (all: readonly FetchedFile[]): readonly FetchedFile[] =>
  all.toSorted((a, b) => a.firstBlock - b.firstBlock);

/** Why these files, in order, cannot be of one chain; null if they can, though blocks may be missing between them. */
export function whyNotOneChain(all: readonly FetchedFile[]): string | null {
  for (const [index, next] of all.slice(1).entries()) {
    const before = all[index] as FetchedFile;
    const files = `${before.file} and ${next.file}`;
    if (next.firstBlock <= before.lastBlock) return `${files} overlap: remove one of them`;
    if (next.firstBlock === before.lastBlock + 1 && next.parentHash !== before.lastHash)
      return `${files} are from different chains: block ${before.lastBlock} has two hashes`;
  }
  return null;
}

/** The first of these blocks that no file, in order, covers, and those up to the next file; null if there are none. */
export function gapIn(all: readonly FetchedFile[], first: number, last: number) {
  const after = all.reduce((next, file) => (file.firstBlock > next ? next : Math.max(next, file.lastBlock + 1)), first);
  const end = all.find(({ firstBlock }) => firstBlock > after)?.firstBlock ?? last + 1;
  return after > last ? null : { first: after, last: Math.min(last, end - 1) };
}
