import { keccak256 } from "../../../kernel/keccak.ts";
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
  const leased = members.filter(({ lease }) => lease !== undefined);
  const first = [
    ledger.lock(),
    sender.members.carried(members.map(({ purpose }) => purpose)),
    areHeld(leased.flatMap(({ lease }) => lease ?? [])),
    ledger.reserved(conditions.count),
    ledger.nextNonce(conditions.count),
  ] as const;
  return inTransaction(
    pool,
    async (_, [, before, held, reserved, nonce], last) => {
      const carried = new Map([...before].filter(([purpose, one]) => !("lost" in one && lost.includes(purpose))));
      const takenOver = new Set(leased.filter((_, place) => held[place] !== true));
      const open = members.filter((member) => !carried.has(member.purpose) && !takenOver.has(member));
      const purposes = [...new Set(open.map(({ purpose }) => purpose))];
      if (purposes.length === 0) return { transaction: null, purposes, carried };
      const { to, data, gas } = callFor(purposes);
      assertAffordable(sender, conditions, { wei: gas * fees.maxFeePerGas, reserved: reserved.wei });
      const raw = sender.sign({ to, data }, { nonce, gas, fees });
      const hash = keccak256(raw);
      const stored = { hash, raw: sender.close(raw, nonce) };
      last(ledger.insert({ ...stored, nonce, purposes, to, gas, maxFee: fees.maxFeePerGas }));
      return { transaction: { hash, raw }, purposes, carried };
    },
    first,
  );
}
