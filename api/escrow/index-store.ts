import pg from "pg";
import { createBatcher } from "../platform/chain/batcher.ts";
import { createReader, type IndexOptions } from "../platform/index/reader.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import { ESCROW_NETWORK, FEE_BPS, type Hold } from "./payment.ts";

/**
 * The index's data on the escrow contracts. Every method returns null while the index is unavailable. Data may be a few
 * blocks behind the chain, and a reorganization may undo it; the activity index's `position` shows how far it has read.
 */
export interface EscrowIndex {
  /** Returns `absent` if the index has seen no hold with this ID. The payment may be over. */
  payment(id: Hex): Promise<Hold | "absent" | null>;
  /** Returns held payments that anyone may refund by `now` (Unix seconds), oldest first, after the given one. */
  overdue(
    now: number,
    limit: number,
    after?: Pick<Hold, "refundableFrom" | "id"> | null,
  ): Promise<readonly Hold[] | null>;
  /** Returns `absent` if it is not an escrow in this index. */
  balances(contract: Address): Promise<EscrowBalances | "absent" | null>;
}

/** Rebuilt from the contract's events, in atomic units of USDC. */
export interface EscrowBalances {
  readonly held: bigint;
  readonly owed: bigint;
  /** All fees to date, withdrawn or not. */
  readonly fees: bigint;
  readonly withdrawn: bigint;
}

/** Concurrent look-ups of payments share a statement. */
const LOOK_UPS = { most: 50, underWay: 4, waitMs: 5 };

/** Creates the reader of the indexer's data on escrow in PostgreSQL. */
export function createEscrowIndex(pool: pg.Pool, { viewsSchema, log }: IndexOptions): EscrowIndex {
  const queries = queriesOf(pg.escapeIdentifier(viewsSchema));
  const send = createReader(pool, log);
  const read = <Row extends pg.QueryResultRow>(name: keyof typeof queries, values: readonly unknown[]) =>
    send<Row>({ name: `escrow ${name} in ${viewsSchema}`, text: queries[name], values: [...values] });
  const payments = async (ids: readonly Hex[]) => {
    const rows = await read<PaymentRow>("payment", [ids]);
    const found = new Map(rows?.map((row) => [row.id, parseHold(row)]));
    return ids.map((id) => rows && (found.get(id) ?? ("absent" as const)));
  };
  return {
    payment: createBatcher(payments, LOOK_UPS),
    async overdue(now, limit, after = null) {
      const rows = await read<PaymentRow>("overdue", [now, limit, after?.refundableFrom ?? 0, after?.id ?? ""]);
      return rows?.map(parseHold) ?? null;
    },
    async balances(contract) {
      const rows = await read<Record<keyof EscrowBalances, string>>("balances", [contract]);
      if (rows === null) return null;
      const [row] = rows;
      if (row === undefined) return "absent";
      const { held, owed, fees, withdrawn } = row;
      return { held: BigInt(held), owed: BigInt(owed), fees: BigInt(fees), withdrawn: BigInt(withdrawn) };
    },
  };
}

const PAYMENT = `p.id, p.contract, p.payer, p.receiver, p.amount, p.salt, c.usdc, c.fee_recipient,
  p.pre_approval_expiry::float8, p.authorization_expiry::float8, p.refund_expiry::float8, p.refundable_from::float8,
  p.held_transaction, p.held_block::float8`;

/** `offset 0` is an optimization fence: without it, the planner may scan all payments to find these few. */
const queriesOf = (views: string) => {
  const byId = (id: string) => `cross join lateral (select * from ${views}.escrow_payment where id = ${id} offset 0) p
    cross join lateral (select * from ${views}.escrow_contract where contract = p.contract offset 0) c`;
  return {
    payment: `select ${PAYMENT} from unnest($1::text[]) as k(id) ${byId("k.id")}`,
    overdue: `select ${PAYMENT} from (select refundable_from, id from ${views}.escrow_open
        where refundable_from <= $1 and (refundable_from, id) > ($3, $4) order by refundable_from, id limit $2) k ${byId("k.id")}
      order by k.refundable_from, k.id`,
    balances: `select held, owed, fees, withdrawn from ${views}.escrow_contract where contract = $1`,
  };
};

interface PaymentRow {
  readonly id: Hex;
  readonly contract: Address;
  readonly payer: Address;
  readonly receiver: Address;
  readonly amount: string;
  readonly salt: string;
  readonly usdc: Address;
  readonly fee_recipient: Address;
  readonly pre_approval_expiry: number;
  readonly authorization_expiry: number;
  readonly refund_expiry: number;
  readonly refundable_from: number;
  readonly held_transaction: Hex;
  readonly held_block: number;
}

const parseHold = (row: PaymentRow): Hold => ({
  network: ESCROW_NETWORK,
  contract: row.contract,
  id: row.id,
  info: {
    operator: row.contract,
    payer: row.payer,
    receiver: row.receiver,
    token: row.usdc,
    maxAmount: BigInt(row.amount),
    preApprovalExpiry: row.pre_approval_expiry,
    authorizationExpiry: row.authorization_expiry,
    refundExpiry: row.refund_expiry,
    minFeeBps: FEE_BPS,
    maxFeeBps: FEE_BPS,
    feeReceiver: row.fee_recipient,
    salt: BigInt(row.salt),
  },
  transaction: row.held_transaction,
  block: row.held_block,
  refundableFrom: row.refundable_from,
});
