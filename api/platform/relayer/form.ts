import type pg from "pg";
import { keccak256 } from "../chain/typed-data.ts";
import { ask, bytes, hex, inTransaction, type Question } from "../db/connection.ts";
import type { Hex } from "../wallet.ts";
import { assertAffordable, feesWithin, MOST_FEE } from "./fees.ts";
import { type Lane, noPlace, PLACES, TurnedAway } from "./places.ts";
import type { Lease, Sender } from "./sender.ts";
import type { UnminedOfAccount } from "./store.ts";

/** A purpose to send a transaction for. */
interface Wanted {
  readonly purpose: Hex;
  readonly lease?: Lease | undefined;
}

interface Admission {
  /** The connection that holds the account's lock. */
  readonly db: pg.PoolClient;
  readonly lane: Lane;
  readonly unmined: UnminedOfAccount;
}

/** Single payments and batches may each lose half of an account's daily limit. */
const LANES_THAT_LOSE = 2n;

const gasLost = (): TurnedAway =>
  new TurnedAway(
    "gas lost",
    "nothing was sent: failed payments have used up today's gas for payers who never paid here",
  );

/**
 * Returns the members that are not sent, by purpose. While there is no place, that is all of them. Once the lane has
 * lost its share of the day's gas, it is those whose payers have never paid here, or have had a payment fail since.
 */
async function admit(
  sender: Sender,
  { db, lane, unmined }: Admission,
  members: readonly Wanted[],
): Promise<ReadonlyMap<Hex, TurnedAway>> {
  if (members.length === 0) return new Map();
  if (unmined.count >= PLACES || unmined.inLane >= sender.shares[lane]) {
    sender.conditions.forget();
    return refusing(members, noPlace(lane));
  }
  const { mostLostWei } = sender;
  const isExempt = lane === "outcome" || lane === "statement";
  if (isExempt || mostLostWei === null || unmined.lostWei * LANES_THAT_LOSE < mostLostWei) return new Map();
  const proved = await ask(db, sender.cargo.haveProved(members.map(({ lease }) => lease ?? null)));
  return refusing(
    members.filter((_, at) => proved[at] !== true),
    gasLost(),
  );
}

const refusing = (members: readonly Wanted[], reason: TurnedAway): ReadonlyMap<Hex, TurnedAway> =>
  new Map(members.map(({ purpose }) => [purpose, reason]));

export interface Call {
  readonly to: Hex;
  readonly data: Hex;
  /** The transaction's gas limit. */
  readonly gas: bigint;
}

/** A purpose of a transaction. */
export interface Member {
  /** 32 bytes, unique. */
  readonly purpose: Hex;
  /** The lease without which it is not sent; undefined if it is not a payment in the journal. */
  readonly lease?: Lease | undefined;
  /** The most that its transaction may offer, in wei per gas; undefined if only `MOST_FEE` limits it. */
  readonly mostFee?: bigint | undefined;
}

/** One transaction for one purpose, or for several with a separate call for each. */
export interface Shipment {
  readonly lane: Lane;
  readonly members: readonly Member[];
  /** Returns the transaction's call for the purposes that are sent, in their order. */
  readonly callFor: (purposes: readonly Hex[]) => Call;
}

export interface Formed {
  /** Signed and stored; null if no purpose is left to send. */
  readonly transaction: { readonly hash: Hex; readonly raw: Hex } | null;
  /** Its purposes. */
  readonly purposes: readonly Hex[];
  /** The earlier transactions of the other purposes. */
  readonly carried: ReadonlyMap<Hex, Carried>;
  /** Why no transaction was stored for the others. */
  readonly refused: ReadonlyMap<Hex, TurnedAway>;
}

/**
 * Allocates a nonce, signs, and stores, in one database transaction under the account's lock, so that there is one
 * transaction on the chain for each purpose. A stored transaction is sent, by us or by the upkeep. Without an
 * acknowledgment, it may have been stored.
 * @param lost purposes that may be sent again, because the transactions that carried them can no longer be mined
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
    carriedBy(
      sender.chainId,
      members.map(({ purpose }) => purpose),
    ),
    sender.cargo.areHeld(leased.flatMap(({ lease }) => lease ?? [])),
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
      const raw = await sender.sign({ to, data }, { nonce, gas, fees }).catch(unsigned);
      if (raw instanceof TurnedAway)
        return { transaction: null, purposes: [], carried, refused: new Map([...refused, ...refusing(open, raw)]) };
      const hash = keccak256(raw);
      const stored = { hash, raw: sender.close(raw, nonce) };
      last(ledger.insert({ ...stored, lane, nonce, purposes, gas, maxFee: fees.maxFeePerGas }));
      return { transaction: { hash, raw }, purposes, carried, refused };
    },
    first,
  );
}

const unsigned = (error: unknown): TurnedAway =>
  new TurnedAway("no signer", `nothing was sent: ${(error as Error).message}`);

/** Returns the fee at which all of them together pay no more for gas than their limits. */
const averageFee = (members: readonly Member[]): bigint =>
  members.reduce((sum, { mostFee = MOST_FEE }) => sum + mostFee, 0n) / BigInt(members.length);

/**
 * The newest transaction for a purpose: its hash, the hash under which it was mined without success, or the hashes of
 * one whose nonce another transaction used.
 */
export type Carried = { readonly hash: Hex } | { readonly reverted: Hex } | { readonly lost: readonly Hex[] };

interface Row {
  readonly purpose: Buffer;
  readonly state: string;
  readonly hashes: Buffer[];
  readonly reverted: Buffer | null;
}

/** True if its transaction or its call within one failed. */
const FAILED = "(relay.reverted OR member.purpose IN (SELECT relay.purposes[place] FROM unnest(relay.failed) place))";

/** Asks for the transactions of one chain sent for purposes, by purpose, whichever account sent them. */
export const carriedBy = (chainId: number, purposes: readonly Hex[]): Question<ReadonlyMap<Hex, Carried>> => ({
  statement: {
    name: "relay-carried",
    text: `SELECT member.purpose, state, hashes, CASE WHEN state <> 'sent' AND ${FAILED} THEN mined_hash END AS reverted
      FROM relay_member AS member JOIN relay ON relay.id = relay_id
      WHERE member.chain = $1 AND member.purpose = ANY($2::bytea[])`,
    values: [chainId, purposes.map(bytes)],
  },
  answer: ({ rows }: pg.QueryResult<Row>) => new Map(rows.map((row) => [hex(row.purpose), carriedIn(row)])),
});

function carriedIn({ state, hashes, reverted }: Row): Carried {
  if (state === "lost") return { lost: hashes.map(hex) };
  return reverted === null ? { hash: hashes.map(hex).at(-1) ?? "0x" } : { reverted: hex(reverted) };
}
