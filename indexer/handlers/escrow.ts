import { type Context, ponder } from "ponder:registry";
import { hold } from "ponder:schema";
import { awaitMoney, isOperator } from "./collected.ts";
import { isVerdict, noteOutcome } from "./escrow-record.ts";
import { isFollowed } from "./followed.ts";
import { recordHold, recordRelease } from "./movements.ts";

// What a payment in escrow means for the wallets. The payments themselves have their own root, ../escrows.

type Address = `0x${string}`;
type Hex = `0x${string}`;

const lower = (address: Address) => address.toLowerCase() as Address;
const movementOf = ({ payer, receiver, amount }: { payer: Address; receiver: Address; amount: bigint }) => ({
  ...{ from: lower(payer), to: lower(receiver) },
  value: amount,
});

/** The block of a hold that ends; null if it is not in the rows. */
async function takeHold(db: Context["db"], id: Hex): Promise<number | null> {
  const held = await db.find(hold, { id });
  if (held !== null) await db.delete(hold, { id });
  return held?.block ?? null;
}

// Ponder refuses handlers for a contract missing from its configuration.
if (process.env.ESCROW_ADDRESSES) {
  ponder.on("Escrow:Held", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    const contract = lower(log.address);
    if (!isFollowed(contract, block.number)) return;
    const movement = movementOf(args);
    awaitMoney(contract, { from: movement.from, value: movement.value, transaction: transaction.hash });
    await db.insert(hold).values({ id: args.id, block: Number(block.number) });
    await recordHold(db, movement, { block, transaction, isCollected: isOperator(contract) });
  });

  ponder.on("Escrow:Released", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    if (!isFollowed(lower(log.address), block.number)) return;
    const [movement, heldBlock] = [movementOf(args), await takeHold(db, args.id)];
    await noteOutcome(db, movement, { status: "released", heldBlock, block, transaction });
    await recordRelease(db, movement, { block, heldBlock });
  });

  ponder.on("Escrow:Refunded", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    if (!isFollowed(lower(log.address), block.number)) return;
    const [movement, heldBlock] = [movementOf(args), await takeHold(db, args.id)];
    if (isVerdict(args.record)) await noteOutcome(db, movement, { status: "refunded", heldBlock, block, transaction });
  });
}
