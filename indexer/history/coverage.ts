import { z } from "zod";
import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import { type Duck, namedExactly, quote } from "./duck.ts";
import { NO_SEAL } from "./seal.ts";

/** What a fetched file covers, written in the file itself: blocks with no transfer leave no other trace. */
export interface Coverage {
  readonly chainId: number;
  readonly scope: "full" | "authorised";
  readonly firstBlock: number;
  readonly lastBlock: number;
  /** The hashes of the last block, and of the one before the first. */
  readonly lastHash: string;
  readonly parentHash: string;
}

const KEY = "transfers_coverage";

const block = z.int().nonnegative();
const hash = z.string().regex(/^0x[0-9a-f]{64}$/);
const COVERAGE = z.object({
  chainId: z.literal(NETWORKS[MAIN_NETWORK].chainId),
  scope: z.enum(["full", "authorised"]),
  ...{ firstBlock: block, lastBlock: block, lastHash: hash, parentHash: hash },
});

/** DuckDB's option for writing it, with a place for the seal. */
export const asMetadata = (coverage: Coverage): string =>
  `{${KEY}: ${quote(JSON.stringify({ ...coverage, ...NO_SEAL }))}}`;

/**
 * Of a Parquet file; null if it was not fetched by `npm run index:fetch`.
 * @throws an error if the file cannot be read, or says nonsense
 */
export async function readCoverage(duck: Pick<Duck, "rows">, file: string): Promise<Coverage | null> {
  const rows = await duck.rows<{ text: string }>(
    `select decode(value) as text from parquet_kv_metadata(${quote(namedExactly(file))}) where decode(key) = '${KEY}'`,
  );
  if (rows[0] === undefined) return null;
  const parsed = COVERAGE.safeParse(JSON.parse(rows[0].text));
  if (!parsed.success) throw new Error("what it says that it covers makes no sense");
  return parsed.data;
}

export const inOrder = <T extends Coverage>(all: readonly T[]): readonly T[] =>
  all.toSorted((a, b) => a.firstBlock - b.firstBlock);

/** Why these files, in order, do not follow each other; null if they do. */
export function whyNotJoined(all: readonly (Coverage & { readonly file: string })[]): string | null {
  for (const [index, next] of all.entries()) {
    const before = all[index - 1];
    if (before === undefined) continue;
    const files = `${before.file} and ${next.file}`;
    if (next.firstBlock <= before.lastBlock) return `${files} overlap: remove one of them`;
    if (next.firstBlock > before.lastBlock + 1)
      return `blocks ${before.lastBlock + 1} to ${next.firstBlock - 1} are missing between ${files}`;
    if (next.parentHash !== before.lastHash)
      return `${files} are from different chains: block ${before.lastBlock} has two hashes`;
  }
  return null;
}
