import { type Context, ponder } from "ponder:registry";
import { head, walletDay } from "ponder:schema";
import { lt, sql } from "ponder";
import { TRANSFER_TOPIC } from "../../api/platform/chain/log-answers.ts";
import type { Address, Hex } from "../../api/platform/wallet.ts";
import { HISTORY_ID, HISTORY_SCHEMA, SCHEMA, SCOPE } from "../environment.ts";
import { dayOf, directTerms, KEPT_DAYS, lower } from "../ledger.ts";
import { recordTransfer } from "./movements.ts";

ponder.on("Usdc:setup", async ({ context }) => {
  if (HISTORY_SCHEMA !== "") await takeOver(context.db);
});

/**
 * Moves a preloaded history's tables, with their keys, into the empty index, in constant time. The history has no rows
 * afterward. Use it only in `setup`, whose transaction also has the first checkpoint.
 * @throws if the history was recreated after the index had begun
 */
async function takeOver(db: Context["db"]): Promise<void> {
  const history = sql.identifier(HISTORY_SCHEMA);
  // Ponder limits a statement to two minutes, but another transaction may be reading the history.
  await db.sql.execute(sql`select set_config('statement_timeout', '0', true)`);
  const id = sql<string>`id`;
  const [found] = await db.sql.select({ id }).from(sql`${history}.history`).for("share");
  if (found?.id !== HISTORY_ID)
    throw new Error(`the history "${HISTORY_SCHEMA}" was recreated after the index had begun`);
  const tables = await db.sql
    .select({ name: sql<string>`relname` })
    .from(sql`pg_class`)
    .where(sql`relnamespace = to_regnamespace(${HISTORY_SCHEMA}) and relkind = 'r' and relname <> 'history'`);
  for (const table of tables) {
    const name = sql.identifier(table.name);
    await db.sql.execute(sql`drop table ${sql.identifier(SCHEMA)}.${name}`);
    await db.sql.execute(sql`alter table ${history}.${name} set schema ${sql.identifier(SCHEMA)}`);
  }
}

interface Place {
  readonly block: { readonly hash: Hex; readonly number: bigint; readonly timestamp: bigint };
  readonly log: { readonly address: Address; readonly logIndex: number };
  readonly transaction: { readonly hash: Hex };
}

const placed = ({ block, transaction }: Pick<Place, "block" | "transaction">) => ({
  ...{ block: block.number, timestamp: block.timestamp, transaction: transaction.hash },
});

/**
 * Returns the next log. Ponder caches receipts forever, even from a block that a reorganization removed, in which log indexes
 * may differ. In that case, the logs are read from the block.
 * @throws if the node does not have the block's logs
 */
async function logAfter(client: Context["client"], { block, log, transaction }: Place) {
  const receipt = await client.getTransactionReceipt({ hash: transaction.hash });
  const isNext = ({ logIndex }: { logIndex: Hex | number | null }) => Number(logIndex) === log.logIndex + 1;
  if (receipt.blockHash === block.hash) return receipt.logs.find(isNext);
  const filter = { blockHash: block.hash, address: log.address };
  const next = (await client.request({ method: "eth_getLogs", params: [filter] })).find(isNext);
  if (next === undefined) throw new Error(`the node has no log after ${log.logIndex} in block ${block.hash}`);
  return next;
}

if (SCOPE === "selective") {
  // This scope saves disk and bandwidth by not subscribing to Transfer.
  ponder.on("Usdc:AuthorizationUsed", async ({ event, context: { client, db } }) => {
    const { args, log, transaction } = event;
    const from = lower(args.authorizer);
    let terms = directTerms({ transaction, usdc: log.address, authorizer: from, nonce: args.nonce });
    if (!terms) {
      const next = await logAfter(client, event);
      const payee = next?.topics[2];
      if (next?.topics[0] !== TRANSFER_TOPIC || lower(next.address) !== lower(log.address) || !payee) return;
      terms = { to: `0x${payee.slice(26)}`, value: BigInt(next.data) };
    }
    await recordTransfer(db, { ...terms, from, authorized: true, ...placed(event) });
  });
} else {
  // FiatTokenV2_2 emits AuthorizationUsed and its Transfer as the next log. Ponder commits only whole blocks, so a variable in
  // memory is enough.
  let used = { block: "", nextLog: -1 };
  ponder.on("Usdc:AuthorizationUsed", async ({ event: { block, log } }) => {
    used = { block: block.hash, nextLog: log.logIndex + 1 };
  });
  ponder.on("Usdc:Transfer", async ({ event, context: { db } }) => {
    const { args, block, log } = event;
    const authorized = used.block === block.hash && used.nextLog === log.logIndex;
    const movement = { from: lower(args.from), to: lower(args.to), value: args.value };
    await recordTransfer(db, { ...movement, authorized, ...placed(event) });
  });
}

ponder.on("Head:block", async ({ event: { block }, context: { db } }) => {
  const row = { block: Number(block.number), at: Number(block.timestamp) };
  const before = await db.find(head, { id: 0 });
  await db
    .insert(head)
    .values({ id: 0, ...row })
    .onConflictDoUpdate(row);
  const today = dayOf(block.timestamp);
  // Once a day, because raw SQL empties Ponder's row cache.
  if (before === null || dayOf(BigInt(before.at)) === today) return;
  await db.sql.delete(walletDay).where(lt(walletDay.day, today - KEPT_DAYS));
});
