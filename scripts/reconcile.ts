import { parseArgs } from "node:util";
import { createChain } from "../api/platform/chain/chain.ts";
import type { Config } from "../api/platform/config/config.ts";
import { connect } from "../api/platform/db/connection.ts";
import { formatUsd } from "../api/platform/money.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../api/platform/networks.ts";
import { readOperators } from "../indexer/operators.ts";
import { readConfig } from "./embedded/environment.ts";
import { SettingError } from "./embedded/settings.ts";
import { type Reconciliation, reconcile, type UnknownReceipt } from "./reconcile-chain.ts";

const USAGE = `Usage: npm run reconcile -- [--network base|base-sepolia] [--from <block>] [--to <block>] [--json]

Lists USDC that PAY_TO_ADDRESS received but that is not in the journal, and payments in the journal that are not on the chain.
It changes nothing. It covers every network, from a day before the journal's first payment to the newest final block. Exits
with 1 if it finds a difference, and with 2 if it cannot check. Configured like the API: by DATABASE_URL and its other
variables, or by the DATA_DIR and PORT of a running "npm start".`;

interface Order {
  readonly networks: readonly Network[];
  readonly from: number | null;
  readonly to: number | null;
  readonly json: boolean;
}

const OPTIONS = {
  network: { type: "string" },
  from: { type: "string" },
  to: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

/** @throws SettingError */
function readOrder(args: readonly string[]): Order {
  try {
    const { network, from, to, json } = parseArgs({ args: [...args], options: OPTIONS }).values;
    const networks = Object.values(NETWORKS).filter(({ key }) => network === undefined || key === network);
    if (networks.length === 0) throw new Error(`There is no network ${network}.`);
    return { networks: networks.map(({ id }) => id), from: blockOf(from), to: blockOf(to), json };
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function blockOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (!/^\d{1,15}$/.test(text)) throw new Error(`Expected a block number, not ${JSON.stringify(text)}.`);
  return Number(text);
}

async function compare(config: Config, { networks, from, to }: Order): Promise<(Reconciliation | null)[]> {
  const url = new URL(config.databaseUrl);
  url.searchParams.set("options", "-c default_transaction_read_only=on");
  const db = connect(url.href, 2);
  const { payTo, escrowAddresses, logBlockRange, rpcBatch } = config;
  const found: (Reconciliation | null)[] = [];
  try {
    for (const network of networks) {
      const chain = createChain(network, { rpcUrl: config.rpcUrls[network], logBlockRange, rpcBatch });
      const progress = progressOf(network);
      // The escrows are only on the main network.
      const contracts = network === MAIN_NETWORK ? escrowAddresses : [];
      const operators = await readOperators(chain.client, contracts);
      const escrows = [...contracts, ...operators.map(({ store }) => store)];
      found.push(await reconcile({ db, chain, network, payTo, escrows, range: { from, to }, progress }));
    }
    return found;
  } finally {
    await db.end();
  }
}

/** Prints a line every few seconds, because a long range takes minutes. */
function progressOf(network: Network) {
  let printedAt = Date.now();
  return (block: bigint, last: bigint) => {
    if (Date.now() - printedAt < 5_000) return;
    printedAt = Date.now();
    console.error(`${NETWORKS[network].key}: block ${block} of ${last}`);
  };
}

const atomic = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);

function tell(one: Reconciliation): void {
  const { network, fromBlock, toBlock, unknown, unshown } = one;
  const { key, money } = NETWORKS[network];
  console.log(`${key}, blocks ${fromBlock} to ${toBlock}: ${unknown.length + unshown.length} found`);
  for (const receipt of unknown)
    console.log(
      `  received and unknown: ${formatUsd(receipt.value)} ${money} from ${receipt.from}, block ${receipt.block}, ${receipt.transaction}: ${kindOf(receipt)}`,
    );
  for (const row of unshown)
    console.log(
      `  ${row.state} and not on the chain: ${formatUsd(row.value)} ${money} from ${row.payer}, nonce ${row.nonce}, block ${row.block}, ${row.transaction}`,
    );
}

function kindOf({ nonce, row }: UnknownReceipt): string {
  if (nonce === null) return "a plain transfer";
  return `nonce ${nonce}, ${row === null ? "not in the journal" : `in the journal as ${row}`}`;
}

/** Returns the error in one line. A connection refused on every address has only a code, no message. */
const causeOf = (error: unknown): string =>
  String((error as Error).message || (error as NodeJS.ErrnoException).code).split("\n")[0] ?? "";

try {
  const order = readOrder(process.argv.slice(2));
  const all = (await compare(await readConfig(), order)).filter((one) => one !== null);
  if (order.json) console.log(JSON.stringify(all, atomic, 2));
  else for (const one of all) tell(one);
  if (all.some(({ unknown, unshown }) => unknown.length + unshown.length > 0)) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof SettingError ? error.message : `The comparison failed: ${causeOf(error)}`);
  process.exitCode = 2;
}
