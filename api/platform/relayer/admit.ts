import type pg from "pg";
import type { Hex } from "../wallet.ts";
import type { Lease } from "../../payments/scheme.ts";
import { TurnedAway } from "../../payments/turned-away.ts";
import { haveProved } from "../db/leases.ts";
import { ask } from "../db/message.ts";
import type { UnminedOfAccount } from "./ledger.ts";
import { type Lane, noPlace, PLACES } from "./places.ts";
import type { Sender } from "./sender.ts";

/** What a transaction is to be for. */
interface Wanted {
  readonly purpose: Hex;
  readonly lease?: Lease | undefined;
}

interface Admission {
  /** Holds the account's lock. */
  readonly db: pg.PoolClient;
  readonly lane: Lane;
  readonly unmined: UnminedOfAccount;
}

/** Payments that go alone and payments that share transactions may each lose half of what an account may lose in a day. */
const LANES_THAT_LOSE = 2n;

const gasLost = (): TurnedAway =>
  new TurnedAway(
    "gas lost",
    "nothing was sent: failed payments have used up today's gas for payers who never paid here",
  );

/**
 * Which of the members are not sent, by purpose: all of them while there is no place; and once the lane has lost its part
 * of a day's gas, those whose payers have never paid here, or made a payment fail since.
 */
export async function admit(
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
  const proved = await ask(db, haveProved(members.map(({ lease }) => lease ?? null)));
  return refusing(
    members.filter((_, at) => proved[at] !== true),
    gasLost(),
  );
}

const refusing = (members: readonly Wanted[], reason: TurnedAway): ReadonlyMap<Hex, TurnedAway> =>
  new Map(members.map(({ purpose }) => [purpose, reason]));
