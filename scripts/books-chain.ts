import type pg from "pg";
import { formatEther, type Hex, padHex, parseAbi, TransactionReceiptNotFoundError } from "viem";
import type { ChainReader } from "../api/platform/chain/chain.ts";
import { type Transfer, transferPages } from "../api/platform/chain/usdc.ts";
import { bytes, hex } from "../api/platform/db/connection.ts";
import { formatUsd } from "../api/platform/money.ts";
import { NETWORKS, type Network } from "../api/platform/networks.ts";
import { feeOf } from "../api/platform/relayer/send.ts";
import type { Address } from "../api/platform/wallet.ts";

/** One movement of money, in one transaction of the chain. */
export interface Entry {
  /** The UTC day of the block, as `YYYY-MM-DD`. */
  readonly day: string;
  readonly network: string;
  /**
   * `sale`: a payment in the journal; `fee`: from an escrow; `refund`: of an exam, to its buyer; `exam`: from an exam, to a
   * seller; `gas`: the cost of our transaction; `other`: any other transfer to or from our accounts.
   */
  readonly type: "sale" | "fee" | "refund" | "exam" | "gas" | "other";
  readonly asset: "USDC" | "ETH";
  /** Atomic units; negative if it left our accounts. */
  readonly amount: bigint;
  readonly transaction: Hex;
  readonly block: number;
  /** The counterparty; for gas, our account that paid it. */
  readonly account: Address;
  /** The route of a sale. */
  readonly about: string;
}

export interface BooksParts {
  readonly db: pg.Pool;
  readonly chain: Pick<ChainReader, "client" | "logs" | "finality">;
  readonly network: Network;
  /** Our accounts with USDC: the receiving address, the fee recipients, and the account of exams. */
  readonly accounts: readonly Address[];
  /** Accounts that pay gas. */
  readonly senders: readonly Address[];
  /** The contracts that pay escrow fees. */
  readonly escrows: readonly Address[];
  /** The first and the last UTC day, as `YYYY-MM-DD`. Null means the first payment, and the newest final block. */
  readonly days: { readonly from: string | null; readonly to: string | null };
}

export interface Books {
  readonly entries: readonly Entry[];
  readonly fromBlock: number;
  readonly toBlock: number;
  /** The change of the accounts' balances in these blocks, and the sum of the entries. */
  readonly change: { readonly balances: bigint | null; readonly entries: bigint };
  /** The journal's sales in these blocks without a transfer to our accounts. */
  readonly missing: readonly Hex[];
}

const BALANCE = parseAbi(["function balanceOf(address) view returns (uint256)"]);

/** Reads every movement of our USDC from the chain, with its purpose. Returns null if the journal has no payment. */
export async function readBooks(parts: BooksParts): Promise<Books | null> {
  const range = await rangeOf(parts);
  if (range === null) return null;
  const dayOf = daysOf(parts.chain);
  const sales = await salesIn(parts, range);
  const refunds = await refundsOf(parts);
  const entries: Entry[] = [];
  const { key } = NETWORKS[parts.network];
  const seen = new Set<string>();
  for (const transfer of await transfersIn(parts, range)) {
    const { from, to, value, transaction, block } = transfer;
    const sold = sales.get(placeOf(transfer));
    if (sold !== undefined) seen.add(placeOf(transfer));
    const base = { day: await dayOf(block), network: key, asset: "USDC" as const, transaction, block };
    const isOurs = (account: Address) => parts.accounts.includes(account);
    if (isOurs(to)) {
      const type = sold !== undefined ? "sale" : parts.escrows.includes(from) ? "fee" : "other";
      entries.push({ ...base, type, amount: value, account: from, about: sold?.route ?? "" });
    }
    if (isOurs(from)) {
      const type = refunds.has(transaction) ? "refund" : refunds.isExam(transaction) ? "exam" : "other";
      entries.push({ ...base, type, amount: -value, account: to, about: "" });
    }
  }
  const change = {
    balances: await changeOfBalances(parts, range),
    entries: entries.reduce((sum, { amount }) => sum + amount, 0n),
  };
  for (const gas of await gasIn(parts, range))
    entries.push({ ...gas, day: await dayOf(gas.block), network: key, type: "gas", asset: "ETH", about: "" });
  const missing = [...sales].filter(([place]) => !seen.has(place)).map(([, { transaction }]) => transaction);
  return { entries: entries.toSorted((a, b) => a.block - b.block), ...range, change, missing };
}

interface Range {
  readonly fromBlock: number;
  readonly toBlock: number;
}

async function rangeOf({ db, chain, network, days }: BooksParts): Promise<Range | null> {
  const { rows } = await db.query<{ first: string | null }>(
    "SELECT min(block_number) AS first FROM payment WHERE chain = $1 AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL",
    [NETWORKS[network].chainId],
  );
  const first = rows[0]?.first ?? null;
  const final = Number((await chain.finality.confirmed())?.number ?? 0n);
  const fromBlock =
    days.from === null ? (first === null ? null : Number(first)) : await blockAt(chain, days.from, final);
  if (fromBlock === null) return null;
  const end = days.to === null ? final : (await blockAt(chain, dayAfter(days.to), final + 1)) - 1;
  return { fromBlock, toBlock: Math.min(end, final) };
}

const dayAfter = (day: string): string => new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);

/** Returns the first block of a day, or `beyond` if the day has not begun by then. */
async function blockAt({ client }: BooksParts["chain"], day: string, beyond: number): Promise<number> {
  const wanted = BigInt(Date.parse(day) / 1_000);
  let [low, high] = [0, beyond];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { timestamp } = await client.getBlock({ blockNumber: BigInt(middle) });
    if (timestamp < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function daysOf({ client }: BooksParts["chain"]): (block: number) => Promise<string> {
  const known = new Map<number, Promise<string>>();
  const read = async (block: number) => {
    const { timestamp } = await client.getBlock({ blockNumber: BigInt(block) });
    return new Date(Number(timestamp) * 1_000).toISOString().slice(0, 10);
  };
  return (block) => {
    const day = known.get(block) ?? read(block);
    known.set(block, day);
    return day;
  };
}

interface Sale {
  readonly transaction: Hex;
  readonly route: string;
}

const placeOf = ({ transaction, logIndex }: { readonly transaction: Hex; readonly logIndex: number }): string =>
  `${transaction} ${logIndex}`;

/** Returns sales by the position of their transfer, which is the log after the use of the authorization. */
async function salesIn({ db, network, accounts }: BooksParts, { fromBlock, toBlock }: Range) {
  const { rows } = await db.query<{ tx: Buffer; log_index: number; route: string }>(
    `SELECT tx, log_index, route FROM payment WHERE chain = $1 AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL
      AND pay_to = ANY($2::bytea[]) AND block_number BETWEEN $3 AND $4`,
    [NETWORKS[network].chainId, accounts.map(bytes), fromBlock, toBlock],
  );
  return new Map<string, Sale>(
    rows.map(({ tx, log_index, route }) => [
      placeOf({ transaction: hex(tx), logIndex: log_index + 1 }),
      { transaction: hex(tx), route },
    ]),
  );
}

async function refundsOf({ db }: BooksParts) {
  const { rows } = await db.query<{ tx: Buffer; is_refund: boolean }>(
    `SELECT tx, true AS is_refund FROM seller_exam_refund UNION ALL SELECT tx, false FROM seller_exam_settlement`,
  );
  const of = (isRefund: boolean) =>
    new Set(rows.filter(({ is_refund }) => is_refund === isRefund).map(({ tx }) => hex(tx)));
  const [refunds, exams] = [of(true), of(false)];
  return { has: (one: Hex) => refunds.has(one), isExam: (one: Hex) => exams.has(one) };
}

async function transfersIn({ chain, network, accounts }: BooksParts, { fromBlock, toBlock }: Range) {
  const own = accounts.map((address) => padHex(address, { size: 32 }));
  const found = new Map<string, Transfer>();
  const { address: usdc } = NETWORKS[network].usdc;
  for (const parties of [[null, own], [own]])
    for await (const { transfers } of transferPages(
      chain.logs,
      { usdc, parties },
      { from: BigInt(fromBlock), to: BigInt(toBlock) },
    ))
      for (const transfer of transfers) if (transfer.value > 0n) found.set(placeOf(transfer), transfer);
  return [...found.values()];
}

/** Returns null if the node does not keep state that old. */
async function changeOfBalances({ chain, network, accounts }: BooksParts, { fromBlock, toBlock }: Range) {
  const sumAt = async (block: number): Promise<bigint> => {
    let sum = 0n;
    for (const account of accounts)
      sum += await chain.client.readContract({
        ...{ address: NETWORKS[network].usdc.address, abi: BALANCE, functionName: "balanceOf", args: [account] },
        blockNumber: BigInt(block),
      });
    return sum;
  };
  try {
    return (await sumAt(toBlock)) - (fromBlock === 0 ? 0n : await sumAt(fromBlock - 1));
  } catch {
    return null;
  }
}

/** Every transaction that the service has sent or that settled one of its payments. */
const TRANSACTIONS = `SELECT DISTINCT tx FROM (
    SELECT mined_hash AS tx FROM relay WHERE chain = $1
    UNION ALL SELECT tx FROM payment WHERE chain = $1 AND state IN ('settled', 'fulfilled') AND block_number BETWEEN $2 AND $3
    UNION ALL SELECT tx FROM escrow_task WHERE chain = $1 AND block_number BETWEEN $2 AND $3
    UNION ALL SELECT tx FROM log_anchor WHERE chain = $1
    UNION ALL SELECT unnest(ARRAY[tx, withdrawal_tx]) FROM publication WHERE chain = $1) AS sent
  WHERE tx IS NOT NULL`;

/** A transaction that a reorganization removed has no receipt. */
const absent = (error: unknown): null => {
  if (error instanceof TransactionReceiptNotFoundError) return null;
  throw error;
};

async function gasIn({ db, chain, network, senders }: BooksParts, { fromBlock, toBlock }: Range) {
  const { rows } = await db.query<{ tx: Buffer }>(TRANSACTIONS, [NETWORKS[network].chainId, fromBlock, toBlock]);
  const paid: Pick<Entry, "amount" | "transaction" | "block" | "account">[] = [];
  for (const { tx } of rows) {
    const receipt = await chain.client.getTransactionReceipt({ hash: hex(tx) }).catch(absent);
    if (receipt === null) continue;
    const [block, account] = [Number(receipt.blockNumber), receipt.from.toLowerCase() as Address];
    // A remote facilitator paid the gas.
    if (block < fromBlock || block > toBlock || !senders.includes(account)) continue;
    paid.push({ amount: -feeOf(receipt), transaction: receipt.transactionHash, block, account });
  }
  return paid;
}

/** Formats an entry's amount in whole units, with a sign. */
export function amountText({ asset, amount }: Pick<Entry, "asset" | "amount">): string {
  const positive = amount < 0n ? -amount : amount;
  return `${amount < 0n ? "-" : ""}${asset === "USDC" ? formatUsd(positive) : formatEther(positive)}`;
}
