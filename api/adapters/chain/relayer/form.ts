import type pg from "pg";
import { keccak256 } from "viem";
import type { Hex } from "../../../kernel/wallet.ts";
import type { Lease } from "../../../payments/scheme.ts";
import { inTransaction } from "../../postgres/connection.ts";
import { areHeld } from "../../postgres/leases.ts";
import { assertAffordable } from "./conditions.ts";
import { offerIn } from "./fees.ts";
import type { Carried } from "./members.ts";
import type { Sender } from "./sender.ts";

export interface Call {
  readonly to: Hex;
  readonly data: Hex;
  /** The transaction's gas limit. */
  readonly gas: bigint;
}

/** What a transaction is for. */
export interface Member {
  /** 32 bytes, unique. */
  readonly purpose: Hex;
  /** It is sent only while this is held; undefined for what is no payment of the journal's. */
  readonly lease?: Lease | undefined;
}

/** One transaction for one purpose, or for several, each by a call of its own within it. */
export interface Shipment {
  readonly members: readonly Member[];
  /** The transaction's call for those purposes that go, in their order. */
  readonly callFor: (purposes: readonly Hex[]) => Call;
}

export interface Formed {
  /** Signed and stored; null if nothing is left to send. */
  readonly transaction: { readonly hash: Hex; readonly raw: Hex } | null;
  /** What it is for. */
  readonly purposes: readonly Hex[];
  /** What was sent before for the others. */
  readonly carried: ReadonlyMap<Hex, Carried>;
}

/**
 * Allocates a nonce, signs and stores, in one transaction of the database and under the account's lock: one transaction
 * of the chain for each purpose. What is stored is sent, by us or by the upkeep; what is not acknowledged may be stored.
 * @param lost purposes that may be sent again, because what carried them can no longer be mined
 */
export async function form(sender: Sender, { members, callFor }: Shipment, lost: readonly Hex[]): Promise<Formed> {
  const { pool, ledger } = sender;
  const conditions = await sender.conditions();
  const fees = offerIn(conditions.market);
  return inTransaction(pool, async (db) => {
    await ledger.lock(db);
    const before = await sender.members.carried(
      db,
      members.map(({ purpose }) => purpose),
    );
    const carried = new Map([...before].filter(([purpose, one]) => !("lost" in one && lost.includes(purpose))));
    const purposes = await heldOf(
      db,
      members.filter(({ purpose }) => !carried.has(purpose)),
    );
    if (purposes.length === 0) return { transaction: null, purposes, carried };
    const { to, data, gas } = callFor(purposes);
    const { wei: reserved } = await ledger.reserved(db, conditions.count);
    assertAffordable(sender, conditions, { wei: gas * fees.maxFeePerGas, reserved });
    const nonce = await ledger.nextNonce(db, conditions.count);
    const raw = await sender.sign({ to, data }, { nonce, gas, fees });
    const hash = keccak256(raw);
    const stored = { hash, raw: sender.close(raw, nonce) };
    await ledger.insert(db, { ...stored, nonce, purposes, to, gas, maxFee: fees.maxFeePerGas });
    return { transaction: { hash, raw }, purposes, carried };
  });
}

/** The purposes of those that no other run has taken over, each once. */
async function heldOf(db: Pick<pg.Pool, "query">, members: readonly Member[]): Promise<Hex[]> {
  const leased = members.filter(({ lease }) => lease !== undefined);
  const held = await areHeld(
    db,
    leased.flatMap(({ lease }) => lease ?? []),
  );
  const takenOver = new Set(leased.filter((_, place) => held[place] !== true));
  return [...new Set(members.filter((member) => !takenOver.has(member)).map(({ purpose }) => purpose))];
}
