// The peer of bench:index: a loader that only fetches the chain's transfers with viem's getLogs and COPYs them into a table
// with a primary key, prefetching the next range. It does not handle reorganizations, restarts, payments, or counterparties.
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { createPublicClient, http, parseAbi } from "viem";
import { NETWORKS } from "../../api/platform/networks.ts";

const BLOCKS_A_REQUEST = 50;
const [event] = parseAbi(["event Transfer(address indexed from, address indexed to, uint256 value)"]);
const { address } = NETWORKS["eip155:8453"].usdc;
const { DATABASE_URL, BASE_RPC_URL, LAST_BLOCK } = process.env;
const last = Number(LAST_BLOCK);

const chain = createPublicClient({ transport: http(BASE_RPC_URL) });
const db = new pg.Client({ connectionString: DATABASE_URL });
await db.connect();
await db.query(`create table bare
  (block int, log_index int, at int8, transaction text, payer text, payee text, value numeric, primary key (block, log_index))`);

const fetchFrom = (block: number) => {
  const toBlock = BigInt(Math.min(last, block + BLOCKS_A_REQUEST - 1));
  return chain.getLogs({ address, event, fromBlock: BigInt(block), toBlock });
};

const started = performance.now();
let loaded = 0;
let next = fetchFrom(1);
for (let block = 1; block <= last; block += BLOCKS_A_REQUEST) {
  const logs = await next;
  if (block + BLOCKS_A_REQUEST <= last) next = fetchFrom(block + BLOCKS_A_REQUEST);
  const lines = logs.map(({ blockNumber, logIndex, blockTimestamp, transactionHash, args }) =>
    [blockNumber, logIndex, Number(blockTimestamp), transactionHash, args.from, args.to, args.value].join("\t"),
  );
  await pipeline([`${lines.join("\n")}\n`], db.query(copyFrom("copy bare from stdin")));
  loaded += logs.length;
}
console.log(`ready ${(loaded * 1_000) / (performance.now() - started)}`);
await db.end();
