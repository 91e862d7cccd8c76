import type pg from "pg";
import type { PublicClient } from "viem";
import type { Head } from "./chain.ts";
import { type Finding, finalizedMarks, findOnChain, type Mark, recordedMarks } from "./marks.ts";

/** So many readings must show another block before the chain counts as another. */
const READINGS = 3;

/** The node serves another chain than the one that the index was made from. Nothing was dropped. */
export class OtherChainError extends Error {
  override readonly name = "OtherChainError";

  constructor({ mark, instead }: Contradiction) {
    super(
      `The index was made from another chain than the node's: it remembers block ${mark.number} as ${inWords(mark)}, and ${READINGS} times the node returned ${inWords(instead)}. Nothing was dropped. If BASE_RPC_URL is right, drop the index with npm run index:drop; the next start makes a new one.`,
    );
  }
}

type Contradiction = Exclude<Finding, string>;

const inWords = ({ hash, timestamp }: Mark): string =>
  `${hash === null ? "" : `${hash}, `}of ${new Date(timestamp * 1000).toISOString().replace(".000", "")}`;

export interface ChainNode {
  readonly client: PublicClient;
  /** Its newest block. */
  readonly head: Head;
}

export interface Patience {
  /** How long a node must contradict the index, in milliseconds. */
  readonly overMs: number;
  readonly wait: (ms: number) => Promise<unknown>;
}

/**
 * Whether the index was made from this chain: null if so, else why that cannot be told yet. Ponder keys its copy by
 * chain id alone: on a local chain that was wiped or rolled back it would stop, or keep the dead fork's rows permanently.
 *
 * No answer, an error or a `null` is evidence of anything: providers lag, forget and fail. Only a block that the node
 * returns, and that differs from the one the index remembers, in every reading over a while, is.
 * @throws OtherChainError for a chain that is another
 */
export async function whyNotSameChain(
  db: pg.Pool,
  { client, head }: ChainNode,
  { overMs, wait }: Patience,
): Promise<string | null> {
  const marks = await recordedMarks(db, head.number);
  const findings = await Promise.all(marks.map((mark) => findOnChain(client, mark)));
  let contradictions = findings.filter(isContradiction);
  if (contradictions.length === 0) return whyUnknown(await finalizedMarks(db), head, findings);
  for (let reading = 2; reading <= READINGS; reading += 1) {
    await wait(overMs / (READINGS - 1));
    const again = await Promise.all(contradictions.map(({ mark }) => findOnChain(client, mark)));
    contradictions = again.filter(isContradiction);
  }
  const [first] = contradictions;
  if (first !== undefined) throw new OtherChainError(first);
  return "the node contradicted the index, and then itself";
}

const isContradiction = (finding: Finding): finding is Contradiction => typeof finding !== "string";

function whyUnknown(finalized: readonly Mark[], head: Head, findings: readonly Finding[]): string | null {
  if (finalized.some(({ number }) => number > head.number))
    return "the node is behind a block that is final in the index";
  if (findings.length > 0 && !findings.includes("same")) return "the node returns no block that the index remembers";
  return null;
}
