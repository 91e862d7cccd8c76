import { keccak256 } from "../chain/keccak.ts";
import type { Hex } from "../wallet.ts";
import type { Lease } from "../../payments/scheme.ts";
import type { TurnedAway } from "../../payments/turned-away.ts";
import { inTransaction } from "../db/connection.ts";
import { areHeld } from "../db/leases.ts";
import { admit } from "./admit.ts";
import { assertAffordable } from "./conditions.ts";
import { feesWithin, MOST_FEE } from "./fees.ts";
import type { Carried } from "./members.ts";
import type { Lane } from "./places.ts";
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
  /** The most that its transaction may offer, in wei per gas; undefined for what has to go out at any price below `MOST_FEE`. */
  readonly mostFee?: bigint | undefined;
}

/** One transaction for one purpose, or for several, each by a call of its own within it. */
export interface Shipment {
  readonly lane: Lane;
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
  /** Why nothing was stored for the others. */
  readonly refused: ReadonlyMap<Hex, TurnedAway>;
}

/**
 * Allocates a nonce, signs and stores, in one transaction of the database and under the account's lock: one transaction
 * of the chain for each purpose. What is stored is sent, by us or by the upkeep; what is not acknowledged may be stored.
 * @param lost purposes that may be sent again, because what carried them can no longer be mined
 */
export async function form(
  sender: Sender,
  { lane, members, callFor }: Shipment,
  lost: readonly Hex[],
): Promise<Formed> {
  const { pool, ledger } = sender;
  const conditions = await sender.conditions();
  const leased = members.filter(({ lease }) => lease !== undefined);
  const first = [
    ledger.lock(),
    sender.members.carried(members.map(({ purpose }) => purpose)),
    areHeld(leased.flatMap(({ lease }) => lease ?? [])),
    ledger.unminedIn(lane, conditions.count),
  ] as const;
  return inTransaction(
    pool,
    async (db, [, before, held, unmined], last) => {
      const carried = new Map([...before].filter(([purpose, one]) => !("lost" in one && lost.includes(purpose))));
      const takenOver = new Set(leased.filter((_, place) => held[place] !== true));
      const wanted = members.filter((member) => !carried.has(member.purpose) && !takenOver.has(member));
      const refused = await admit(sender, { db, lane, unmined }, wanted);
      const open = wanted.filter(({ purpose }) => !refused.has(purpose));
      const purposes = [...new Set(open.map(({ purpose }) => purpose))];
      if (purposes.length === 0) return { transaction: null, purposes, carried, refused };
      const fees = feesWithin(averageFee(open), conditions.market);
      const { to, data, gas } = callFor(purposes);
      const nonce = unmined.nextNonce;
      assertAffordable(sender, conditions, { wei: gas * fees.maxFeePerGas, reserved: unmined.wei });
      const raw = sender.sign({ to, data }, { nonce, gas, fees });
      const hash = keccak256(raw);
      const stored = { hash, raw: sender.close(raw, nonce) };
      last(ledger.insert({ ...stored, lane, nonce, purposes, gas, maxFee: fees.maxFeePerGas }));
      return { transaction: { hash, raw }, purposes, carried, refused };
    },
    first,
  );
}

/** At this fee, all of them together pay no more for gas than they may. */
const averageFee = (members: readonly Member[]): bigint =>
  members.reduce((sum, { mostFee = MOST_FEE }) => sum + mostFee, 0n) / BigInt(members.length);
