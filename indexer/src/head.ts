import { ponder } from "ponder:registry";
import { head, walletDay } from "ponder:schema";
import { lt } from "ponder";
import { dayOf, KEPT_DAYS } from "../ledger.ts";

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
