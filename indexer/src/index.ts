import { type Context, ponder } from "ponder:registry";
import { coverage, pair, walletDay } from "ponder:schema";
import {
  dayOf,
  directTerms,
  isBetweenOthers,
  type Movement,
  orderedPair,
  QUALIFYING_ATOMIC,
  TRANSFER_TOPIC,
  withAge,
} from "../ledger.ts";
import { takeOver } from "./history.ts";
import { noteFunder, recordPayment } from "./payments.ts";

// Find, insert and update only: raw SQL in a handler empties Ponder's row cache and makes a backfill three times slower.

type Address = `0x${string}`;
type Database = Context["db"];
type Seen = Movement & {
  readonly authorised: boolean;
  readonly timestamp: bigint;
  readonly transaction: `0x${string}`;
};
/**
 * `age` is the number of days since the pair's previous touch, null for the first; `fresh` is false after the first
 * touch of a day.
 */
interface Touch {
  readonly fresh: boolean;
  readonly age: number | null;
  /** Everything this sender has sent this receiver so far. */
  readonly sentAtomic: bigint;
}

const scope = process.env.INDEX_SCOPE === "authorised" ? "authorised" : "full";
const own = new Set((process.env.OWN_ADDRESSES ?? "").split(",").filter(Boolean));
const lower = (address: Address) => address.toLowerCase() as Address;

async function touchPair(db: Database, { from, to, value }: Movement, day: number): Promise<Touch> {
  const key = orderedPair(from, to);
  const way = from === key.low ? "upAtomic" : "downAtomic";
  const before: { lastDay: number | null } = { lastDay: null };
  const { [way]: sentAtomic } = await db
    .insert(pair)
    .values({ ...key, upAtomic: 0n, downAtomic: 0n, lastDay: day, [way]: value })
    .onConflictDoUpdate((row) => {
      before.lastDay = row.lastDay;
      return { lastDay: day, [way]: row[way] + value };
    });
  const fresh = before.lastDay !== day;
  return { fresh, age: fresh && before.lastDay !== null ? day - before.lastDay : null, sentAtomic };
}

async function addToDay(
  db: Database,
  wallet: Address,
  { seen, touch }: { readonly seen: Seen; readonly touch: Touch },
): Promise<void> {
  const lastAt = Number(seen.timestamp);
  const paid = seen.authorised && wallet === seen.from ? 1 : 0;
  const qualifying = paid === 1 && seen.value >= QUALIFYING_ATOMIC ? 1 : 0;
  const qualifyingAtomic = qualifying === 1 ? seen.value : 0n;
  const touched = touch.fresh ? 1 : 0;
  const first = { paid, qualifying, qualifyingAtomic, touched, ages: withAge(null, touch.age), lastAt };
  await db
    .insert(walletDay)
    .values({ wallet, day: dayOf(seen.timestamp), ...first })
    .onConflictDoUpdate((row) => ({
      paid: row.paid + paid,
      qualifying: row.qualifying + qualifying,
      qualifyingAtomic: row.qualifyingAtomic + qualifyingAtomic,
      touched: row.touched + touched,
      ages: withAge(row.ages, touch.age),
      lastAt,
    }));
}

async function record(db: Database, seen: Seen): Promise<void> {
  if (!isBetweenOthers(seen, own)) return;
  const touch = await touchPair(db, seen, dayOf(seen.timestamp));
  await addToDay(db, seen.from, { seen, touch });
  await addToDay(db, seen.to, { seen, touch });
  // Authorized payments alone do not show who funds a wallet.
  if (scope === "full") await noteFunder(db, { funded: seen.to, funder: seen.from, sentAtomic: touch.sentAtomic });
  if (seen.authorised) await recordPayment(db, seen);
}

ponder.on("Usdc:setup", async ({ context }) => {
  const { FIRST_BLOCK, HISTORY_SCHEMA } = process.env;
  if (HISTORY_SCHEMA) await takeOver(context.db, HISTORY_SCHEMA);
  await context.db.insert(coverage).values({ id: 0, scope, firstBlock: Number(FIRST_BLOCK) });
});

if (scope === "authorised") {
  // Not subscribing to Transfer at all is what saves disk and bandwidth.
  ponder.on("Usdc:AuthorizationUsed", async ({ event: { args, block, log, transaction }, context: { client, db } }) => {
    const from = lower(args.authorizer);
    let terms = directTerms({ transaction, usdc: log.address, authorizer: from, nonce: args.nonce });
    if (!terms) {
      const { logs } = await client.getTransactionReceipt({ hash: transaction.hash });
      const next = logs.find(({ logIndex }) => logIndex === log.logIndex + 1);
      const payee = next?.topics[2];
      if (next?.topics[0] !== TRANSFER_TOPIC || lower(next.address) !== lower(log.address) || !payee) return;
      terms = { to: `0x${payee.slice(26)}`, value: BigInt(next.data) };
    }
    await record(db, {
      ...terms,
      from,
      authorised: true,
      timestamp: block.timestamp,
      transaction: transaction.hash,
    });
  });
} else {
  // FiatTokenV2_2 emits AuthorizationUsed and, as the very next log, its Transfer. Ponder commits only whole blocks, so
  // memory suffices.
  let used = { block: "", nextLog: -1 };
  ponder.on("Usdc:AuthorizationUsed", async ({ event: { block, log } }) => {
    used = { block: block.hash, nextLog: log.logIndex + 1 };
  });
  ponder.on("Usdc:Transfer", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    const authorised = used.block === block.hash && used.nextLog === log.logIndex;
    await record(db, {
      from: lower(args.from),
      to: lower(args.to),
      value: args.value,
      authorised,
      timestamp: block.timestamp,
      transaction: transaction.hash,
    });
  });
}
