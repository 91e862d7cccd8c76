import { join } from "node:path";
import { fetchTransfers } from "../../indexer/fetch/fetch.ts";
import { openDuck, quote } from "../../indexer/history/duck.ts";
import { judge } from "./goals.ts";
import { type Stage, withStage } from "./stage.ts";
import { writeCsv } from "./transfers-csv.ts";

// `npm run index:fetch` in authorized scope from a node, beside which it counts every payment exactly once.

/** As on Base: 230 transfers of USDC a block, of which 11.5 are payments, here by busy wallets as often as by others. */
const PER_BLOCK = 230;
const AUTHORISED_EVERY = 20;

async function fetchAll({ env, chain, folder }: Stage): Promise<boolean> {
  const before = process.cpuUsage();
  const settings = { urls: [env.BASE_RPC_URL], perSecond: 10_000, scope: "authorised", startBlock: 1 } as const;
  const out = join(folder, "fetched");
  const { files, traffic } = await fetchTransfers({ settings, folder: out, tell: () => undefined });
  const { user, system } = process.cpuUsage(before);
  const expected = join(folder, "transfers.csv");
  await writeCsv(chain, expected);
  const duck = await openDuck(join(folder, "duck"));
  const columns = `block, "time", log_index, value, authorised`;
  const hexes = ["transaction", "from", "to"];
  const theirs = `select ${columns}, ${hexes.map((name) => `"${name}"`).join()} from read_csv(${quote(expected)}) where authorised`;
  const list = files.map(({ file }) => quote(file)).join();
  const ours = `select ${columns}, ${hexes.map((name) => `'0x' || lower(hex("${name}"))`).join()} from read_parquet([${list}])`;
  const [row] = await duck.rows<{ different: number; payments: number }>(
    `select count(*)::double as different, (select count(*) from (${theirs}))::double as payments
      from ((${ours} except all ${theirs}) union all (${theirs} except all ${ours}))`,
  );
  duck.close();
  const payments = row?.payments ?? Number.NaN;
  const blocks = chain.last;
  console.log(
    `${payments} payments in ${blocks} blocks: ${files.length} files, ${traffic.requests} requests, ${(traffic.bytes / 1e6).toFixed(1)} MB`,
  );
  return judge([
    { name: "bytes of JSON a payment", value: traffic.bytes / payments, limit: 1_500, isFloor: false },
    { name: "µs of processors a payment", value: (user + system) / payments, limit: 30, isFloor: false },
    { name: "blocks a request", value: blocks / traffic.requests, limit: 35, isFloor: true },
    { name: "payments that differ from a recount", value: row?.different ?? Number.NaN, limit: 0, isFloor: false },
  ]);
}

/** @param transfers of the chain. Returns whether all goals were met. */
export const runFetch = (transfers: number): Promise<boolean> =>
  withStage({ transfers, perBlock: PER_BLOCK, authorisedEvery: AUTHORISED_EVERY, secondsPerBlock: 2 }, fetchAll);
