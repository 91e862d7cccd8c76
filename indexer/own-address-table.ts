import pg from "pg";
import type { Address } from "../api/kernel/wallet.ts";
import type { Queryable } from "./schemas.ts";

/** An address of the service, and the first block from which its transfers count in no history; 0: always. */
export interface OwnAddress {
  readonly address: Address;
  readonly fromBlock: number;
  /** The first block from which its holds count as payments; 0: all do, null: it is no escrow that the rows follow. */
  readonly escrowFrom: number | null;
}

/** In a Ponder schema, and read by its view `coverage`. */
export const OWN_ADDRESS_TABLE =
  "create table own_address (address text primary key, from_block int8 not null, escrow_from int8)";

export async function readOwnAddresses(db: Queryable, schema: string): Promise<readonly OwnAddress[]> {
  const { rows } = await db.query<{ address: Address; from: string; escrow: string | null }>(
    `select address, from_block as from, escrow_from as escrow from ${pg.escapeIdentifier(schema)}.own_address
      order by address`,
  );
  return rows.map(({ address, from, escrow }) => ({
    ...{ address, fromBlock: Number(from) },
    escrowFrom: escrow === null ? null : Number(escrow),
  }));
}

export async function addOwnAddresses(db: Queryable, schema: string, own: readonly OwnAddress[]): Promise<void> {
  await db.query(
    `insert into ${pg.escapeIdentifier(schema)}.own_address
      select * from unnest($1::text[], $2::int8[], $3::int8[])
      on conflict (address) do update set from_block = excluded.from_block, escrow_from = excluded.escrow_from`,
    [own.map(({ address }) => address), own.map(({ fromBlock }) => fromBlock), own.map(({ escrowFrom }) => escrowFrom)],
  );
}

/** Says what is in the table, so that it can be compared. */
export const ownInOneLine = (own: readonly OwnAddress[]): string =>
  own.map(({ address, fromBlock, escrowFrom }) => `${address}=${fromBlock}/${escrowFrom ?? ""}`).join();
