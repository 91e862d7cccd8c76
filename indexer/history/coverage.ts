import { basename } from "node:path";

/** The blocks that a fetched file covers. The file's name has them, because blocks without a transfer leave no line. */
export interface Coverage {
  readonly day: string;
  readonly firstBlock: number;
  readonly lastBlock: number;
  /** The hashes of the block before the first, and of the last block, as `shortHash` shortens them. */
  readonly parentHash: string;
  readonly lastHash: string;
}

export type FetchedFile = Coverage & { readonly file: string };

const NAME = /^(\d{4}-\d\d-\d\d)-(\d+)-(\d+)-([0-9a-f]{16})-([0-9a-f]{16})\.csv\.gz$/;

/** Shortens a block hash for a file name. */
export const shortHash = (hash: string): string => hash.slice(2, 18);

export const nameOf = ({ day, firstBlock, lastBlock, parentHash, lastHash }: Coverage): string =>
  `${[day, firstBlock, lastBlock, parentHash, lastHash].join("-")}.csv.gz`;

/** Returns null if the file is not from `npm run index:fetch`, or was renamed. */
export function coverageOf(file: string): FetchedFile | null {
  const [, day, first, last, parentHash, lastHash] = NAME.exec(basename(file)) ?? [];
  if (day === undefined || parentHash === undefined || lastHash === undefined) return null;
  return { file, day, firstBlock: Number(first), lastBlock: Number(last), parentHash, lastHash };
}

export const inOrder = (all: readonly FetchedFile[]): readonly FetchedFile[] =>
  all.toSorted((a, b) => a.firstBlock - b.firstBlock);

/** Returns the reason that these files, in order, cannot be from one chain, or null. Blocks may be missing between them. */
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

/** Returns the first range of these blocks that no file covers, or null. */
export function gapIn(all: readonly FetchedFile[], first: number, last: number) {
  const after = all.reduce((next, file) => (file.firstBlock > next ? next : Math.max(next, file.lastBlock + 1)), first);
  const end = all.find(({ firstBlock }) => firstBlock > after)?.firstBlock ?? last + 1;
  return after > last ? null : { first: after, last: Math.min(last, end - 1) };
}
