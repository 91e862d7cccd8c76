import { parseArgs } from "node:util";
import pg from "pg";
import { parseAbi } from "viem";
import { createChain } from "../api/platform/chain/chain.ts";
import { accountAddress } from "../api/platform/chain/remote-signer.ts";
import type { Config } from "../api/platform/config/config.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../api/platform/networks.ts";
import type { Address } from "../api/platform/wallet.ts";
import { readOperators } from "../indexer/operators.ts";
import { amountText, type Books, type Entry, readBooks } from "./books-chain.ts";
import { readConfig } from "./embedded/environment.ts";
import { SettingError } from "./embedded/settings.ts";

const USAGE = `Usage: npm run books -- [--from 2026-01-01] [--to 2026-01-31] [--network base|base-sepolia] [--days]

Prints a CSV of sales, fees, refunds, payments in exams, and gas: one line per transaction, or with --days one line per day
and type. Days are UTC and inclusive. It covers every USDC transfer to or from the receiving address, the fee recipients, and
the account of exams, in final blocks, and compares the sum with the change of their balances. It changes nothing. Exits with
1 if a sale has no transfer or a sum differs, and with 2 if it cannot check. Configured like the API: by DATABASE_URL and its
other variables, or by the DATA_DIR and PORT of a running "npm start".`;

interface Order {
  readonly networks: readonly Network[];
  readonly days: { readonly from: string | null; readonly to: string | null };
  readonly isByDay: boolean;
}

/** @throws SettingError */
function readOrder(args: readonly string[]): Order {
  try {
    const { network, from, to, days } = parseArgs({
      args: [...args],
      options: {
        network: { type: "string" },
        from: { type: "string" },
        to: { type: "string" },
        days: { type: "boolean", default: false },
      },
    }).values;
    const networks = Object.values(NETWORKS).filter(({ id, key }) =>
      network === undefined ? id === MAIN_NETWORK : key === network,
    );
    if (networks.length === 0) throw new Error(`There is no network ${network}.`);
    return { networks: networks.map(({ id }) => id), days: { from: dayOf(from), to: dayOf(to) }, isByDay: days };
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function dayOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || time.toISOString().slice(0, 10) !== text)
    throw new Error(`Expected a day like 2026-01-31, not ${JSON.stringify(text)}.`);
  return text;
}

const FEE_RECIPIENT = parseAbi(["function FEE_RECIPIENT() view returns (address)"]);

async function read(config: Config, network: Network, days: Order["days"]): Promise<Books | null> {
  const url = new URL(config.databaseUrl);
  url.searchParams.set("options", "-c default_transaction_read_only=on");
  // No statement timeout, unlike the API, because a year of sales takes longer.
  const db = new pg.Pool({ connectionString: url.href, max: 2 });
  const { payTo, logBlockRange, rpcBatch, arbiterKey, facilitator, exams } = config;
  const escrowAddresses = network === MAIN_NETWORK ? config.escrowAddresses : [];
  try {
    const chain = createChain(network, { rpcUrl: config.rpcUrls[network], logBlockRange, rpcBatch });
    const operators = await readOperators(chain.client, escrowAddresses);
    const recipients = await Promise.all(
      escrowAddresses.map((address) =>
        chain.client.readContract({ address, abi: FEE_RECIPIENT, functionName: "FEE_RECIPIENT" }),
      ),
    );
    const own = [payTo, ...recipients, ...(exams === null ? [] : [accountAddress(exams.key)])];
    const senders = [arbiterKey, ...("key" in facilitator ? [facilitator.key] : [])].map((key) =>
      accountAddress(key).toLowerCase(),
    );
    return await readBooks({
      ...{ db, chain, network, days },
      accounts: [...new Set(own.map((address) => address.toLowerCase() as Address))],
      senders: senders as Address[],
      escrows: [...escrowAddresses, ...operators.map(({ store }) => store)],
    });
  } finally {
    await db.end();
  }
}

const lineOf = ({ day, network, type, asset, transaction, block, account, about, ...entry }: Entry): string =>
  [day, network, type, asset, amountText({ asset, ...entry }), transaction, block, account, about].join(",");

function byDay(entries: readonly Entry[]): readonly string[] {
  const sums = new Map<string, { readonly asset: Entry["asset"]; amount: bigint; count: number }>();
  for (const { day, network, type, asset, amount } of entries) {
    const sum = sums.get([day, network, type, asset].join(",")) ?? { asset, amount: 0n, count: 0 };
    sums.set([day, network, type, asset].join(","), { asset, amount: sum.amount + amount, count: sum.count + 1 });
  }
  return [...sums].toSorted().map(([name, sum]) => `${name},${amountText(sum)},${sum.count}`);
}

/** Returns whether everything adds up. */
function tell(network: Network, { fromBlock, toBlock, change, missing }: Books): boolean {
  const { key } = NETWORKS[network];
  const text = (amount: bigint) => `${amountText({ asset: "USDC", amount })} USDC`;
  console.error(`${key}, blocks ${fromBlock} to ${toBlock}: the entries add up to ${text(change.entries)}`);
  for (const transaction of missing) console.error(`${key}: a sale without a transfer, ${transaction}`);
  if (change.balances === null)
    console.error(`${key}: the node does not have balances that old, so they were not compared`);
  else if (change.balances !== change.entries)
    console.error(`${key}: the balances changed by ${text(change.balances)}`);
  return missing.length === 0 && (change.balances ?? change.entries) === change.entries;
}

try {
  const { networks, days, isByDay } = readOrder(process.argv.slice(2));
  const config = await readConfig();
  console.log(
    isByDay
      ? "day,network,type,asset,amount,transactions"
      : "day,network,type,asset,amount,transaction,block,account,about",
  );
  for (const network of networks) {
    const books = await read(config, network, days);
    if (books === null) continue;
    for (const line of isByDay ? byDay(books.entries) : books.entries.map(lineOf)) console.log(line);
    if (!tell(network, books)) process.exitCode = 1;
  }
} catch (error) {
  const cause = String((error as Error).message || (error as NodeJS.ErrnoException).code).split("\n")[0];
  console.error(error instanceof SettingError ? error.message : `The books could not be checked: ${cause}`);
  process.exitCode = 2;
}
