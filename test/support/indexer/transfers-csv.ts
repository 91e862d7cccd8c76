import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { GeneratedChain } from "./generated-chain.ts";

const HEADER = "block,time,transaction,log_index,from,to,value,authorised\n";

function* csvOf(chain: GeneratedChain, lastBlock: number): Generator<string> {
  yield HEADER;
  for (let block = 1; block <= lastBlock; block += 1) {
    const time = chain.timeOf(block);
    yield chain
      .transfersOf(block)
      .map(
        ({ transaction, logIndex, from, to, value, authorised }) =>
          `${block},${time},${transaction},${logIndex},${from},${to},${value},${authorised}\n`,
      )
      .join("");
  }
}

/** Writes the chain's transfers up to this block to a file for `npm run index:preload`. */
export const writeCsv = (chain: GeneratedChain, file: string, lastBlock = chain.last): Promise<void> =>
  pipeline(csvOf(chain, lastBlock), createWriteStream(file));
