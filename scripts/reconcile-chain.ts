import type pg from "pg";
import { type Hex, padHex, parseEventLogs } from "viem";
import type { ChainReader } from "../api/platform/chain/chain.ts";
import { type Transfer, transferPages } from "../api/platform/chain/usdc.ts";
import { bytes, hex } from "../api/platform/db/connection.ts";
import { NETWORKS, type Network } from "../api/platform/networks.ts";
import type { Address } from "../api/platform/wallet.ts";
import { usdcEventsAbi } from "../contracts/abi.ts";

const [AUTHORIZATION_USED] = usdcEventsAbi;

/** USDC that arrived without a matching row in the journal. */
export interface UnknownReceipt {
  readonly transaction: Hex;
  readonly block: number;
  readonly logIndex: number;
  readonly from: Address;
  /** Atomic units. */
  readonly value: bigint;
  /** The nonce of the authorization, or null for a plain transfer. */
  readonly nonce: Hex | null;
  /** The journal's state of that authorization, or null if it has none. */
  readonly row: string | null;
}

/** A row of the journal whose settlement is not on the chain. */
export interface UnshownRow {
  readonly transaction: Hex;
  readonly block: number;
  readonly payer: Address;
  readonly nonce: Hex;
  readonly value: bigint;
  readonly payTo: Address;
  readonly state: string;
}

export interface Reconciliation {
  readonly network: Network;
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly unknown: readonly UnknownReceipt[];
  readonly unshown: readonly UnshownRow[];
}

export interface ReconcileParts {
  readonly db: pg.Pool;
  readonly chain: Pick<ChainReader, "client" | "logs" | "finality">;
  readonly network: Network;
  readonly payTo: Address;
  /** Escrow contracts and operators' token stores. Their own events account for their payouts. */
  readonly escrows: readonly Address[];
  /** Block numbers. The default is from the journal's first payment to the newest final block. */
  readonly range: { readonly from: number | null; readonly to: number | null };
  readonly progress: (block: bigint, last: bigint) => void;
}

/** Compares the chain with the journal. Returns null if the journal has no payment. */
export async function reconcile(parts: ReconcileParts): Promise<Reconciliation | null> {
  const { chain, network, range } = parts;
  const final = Number((await chain.finality.confirmed())?.number ?? 0n);
  const fromBlock = range.from ?? (await firstBlock(parts));
  if (fromBlock === null) return null;
  const toBlock = Math.min(range.to ?? final, final);
  const rows = await rowsIn(parts, fromBlock, toBlock);
  const addresses = [...new Set([parts.payTo, ...rows.map(({ payTo }) => payTo)])];
  const transfers = await transfersTo(parts, addresses, { from: BigInt(fromBlock), to: BigInt(toBlock) });
  const shown = new Map(transfers.map((transfer) => [placeOf(transfer), transfer]));
  const known = new Set(rows.map(placeOf));
  const received = transfers.filter(
    (one) => one.to === parts.payTo && one.value > 0n && !known.has(placeOf(one)) && !parts.escrows.includes(one.from),
  );
  const unknown: UnknownReceipt[] = [];
  for (const one of received) unknown.push(await explained(parts, one));
  const isShown = (row: Row) => {
    const transfer = shown.get(placeOf(row));
    return transfer?.from === row.payer && transfer.to === row.payTo && transfer.value === row.value;
  };
  const unshown = rows.filter((row) => !isShown(row)).map(({ logIndex: _, ...row }) => row);
  return { network, fromBlock, toBlock, unknown, unshown };
}

/** Returns the block a day before the first payment arrived, because its authorization may already have been used. */
async function firstBlock({ db, network }: ReconcileParts): Promise<number | null> {
  const { chainId, blockSeconds } = NETWORKS[network];
  const { rows } = await db.query<{ first: string | null }>(
    "SELECT min(least(head_block, coalesce(block_number, head_block))) AS first FROM payment WHERE chain = $1",
    [chainId],
  );
  const first = rows[0]?.first ?? null;
  return first === null ? null : Math.max(0, Number(first) - Math.ceil(86_400 / blockSeconds));
}

type Row = UnshownRow & { readonly logIndex: number };

/** `logIndex` is the index of the Transfer, which is the log after the use of the authorization. */
async function rowsIn({ db, network }: ReconcileParts, from: number, to: number): Promise<Row[]> {
  const { rows } = await db.query(
    `SELECT tx, block_number, log_index, payer, nonce, value, pay_to, state FROM payment
      WHERE chain = $1 AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL AND block_number BETWEEN $2 AND $3
      ORDER BY block_number, log_index`,
    [NETWORKS[network].chainId, from, to],
  );
  return rows.map((row) => ({
    transaction: hex(row.tx),
    block: Number(row.block_number),
    logIndex: row.log_index + 1,
    payer: hex(row.payer),
    nonce: hex(row.nonce),
    value: BigInt(row.value),
    payTo: hex(row.pay_to),
    state: row.state,
  }));
}

const placeOf = ({ transaction, logIndex }: { readonly transaction: Hex; readonly logIndex: number }) =>
  `${transaction} ${logIndex}`;

async function transfersTo(
  { chain, network, progress }: ReconcileParts,
  to: readonly Address[],
  range: { readonly from: bigint; readonly to: bigint },
): Promise<Transfer[]> {
  const parties = [null, to.map((address) => padHex(address, { size: 32 }))];
  const found: Transfer[] = [];
  for await (const page of transferPages(chain.logs, { usdc: NETWORKS[network].usdc.address, parties }, range)) {
    found.push(...page.transfers);
    progress(page.read.to, range.to);
  }
  return found;
}

/** Returns the authorization of a transfer, and its state in the journal. */
async function explained({ db, chain, network }: ReconcileParts, transfer: Transfer): Promise<UnknownReceipt> {
  const { to: _, ...receipt } = transfer;
  const { logs } = await chain.client.getTransactionReceipt({ hash: transfer.transaction });
  const before = logs.filter(({ logIndex }) => logIndex === transfer.logIndex - 1);
  const [used] = parseEventLogs({ abi: [AUTHORIZATION_USED], logs: before });
  if (used === undefined || used.args.authorizer.toLowerCase() !== transfer.from)
    return { ...receipt, nonce: null, row: null };
  const { nonce } = used.args;
  const { rows } = await db.query<{ state: string; reason: string | null }>(
    "SELECT state, reason FROM payment WHERE chain = $1 AND payer = $2 AND nonce = $3",
    [NETWORKS[network].chainId, bytes(transfer.from), bytes(nonce)],
  );
  const [row] = rows;
  const state = row?.reason ? `${row.state} (${row.reason})` : row?.state;
  return { ...receipt, nonce, row: state ?? null };
}
