import { ponder } from "ponder:registry";
import { head } from "ponder:schema";

ponder.on("Head:block", async ({ event: { block }, context: { db } }) => {
  const row = { block: Number(block.number), at: Number(block.timestamp) };
  await db
    .insert(head)
    .values({ id: 0, ...row })
    .onConflictDoUpdate(row);
});
