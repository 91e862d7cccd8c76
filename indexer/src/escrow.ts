import { type Context, ponder } from "ponder:registry";
import { escrowContract, escrowOpen, escrowPayment } from "ponder:schema";
import type { Address, Hex } from "../../api/platform/wallet.ts";
import { CUSTODIES, ESCROWS } from "../environment.ts";
import { lower } from "../ledger.ts";
import { noteOutcome } from "./escrow-record.ts";
import { awaitMoney, isOperator, recordHold, recordRelease } from "./movements.ts";

type Database = Context["db"];

interface Sums {
  /** The sum of all payments that are held now. With `owed`, it is the balance that the escrow must have. */
  readonly held?: bigint;
  readonly owed?: bigint;
  readonly fees?: bigint;
  readonly withdrawn?: bigint;
}

/** Adds to a contract's sums. Its first event creates the row. */
async function post(db: Database, contract: Address, sums: Sums): Promise<void> {
  if ((await db.find(escrowContract, { contract })) === null)
    throw new Error(
      `${contract} is not an escrow, or ESCROW_START_BLOCK is after its deployment: no Opened event was found`,
    );
  const { held = 0n, owed = 0n, fees = 0n, withdrawn = 0n } = sums;
  await db.update(escrowContract, { contract }).set((row) => ({
    ...{ held: row.held + held, owed: row.owed + owed },
    ...{ fees: row.fees + fees, withdrawn: row.withdrawn + withdrawn },
  }));
}

/** The record of a hold that ended without a verdict: by timeout, or because the merchant refused the input. */
const NO_RECORD: Hex = `0x${"00".repeat(32)}`;

interface Outcome {
  readonly status: "released" | "refunded";
  readonly record: Hex;
  readonly fee: bigint | null;
  readonly block: { readonly number: bigint; readonly timestamp: bigint };
  readonly transaction: { readonly hash: Hex };
}

/** @returns the payment's row */
async function settle(db: Database, id: Hex, { status, record, fee, block, transaction }: Outcome) {
  const at = { outcomeBlock: Number(block.number), outcomeAt: Number(block.timestamp) };
  const outcome = { status, record, fee, outcomeTransaction: transaction.hash, ...at };
  const payment = await db.update(escrowPayment, { id }).set(outcome);
  // By key, so that Ponder's row cache survives and a reorganization undoes it like any other change.
  await db.delete(escrowOpen, { refundableFrom: payment.refundableFrom, id });
  return payment;
}

const movementOf = ({ payer, receiver, amount }: { payer: Address; receiver: Address; amount: bigint }) => ({
  ...{ from: lower(payer), to: lower(receiver), value: amount },
});

// Ponder rejects handlers for a contract that is not in its configuration.
if (ESCROWS.length > 0) {
  ponder.on("Escrow:Opened", async ({ event: { args, log }, context: { db } }) => {
    const roles = { usdc: lower(args.usdc), arbiter: lower(args.arbiter), feeRecipient: lower(args.feeRecipient) };
    const nothing = { held: 0n, owed: 0n, fees: 0n, withdrawn: 0n };
    await db.insert(escrowContract).values({ contract: lower(log.address), ...roles, ...nothing });
  });

  ponder.on("Escrow:Held", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    const { id, amount, preApprovalExpiry, authorizationExpiry, refundExpiry, salt, refundableFrom } = args;
    const [contract, movement] = [lower(log.address), movementOf(args)];
    await post(db, contract, { held: amount });
    await db.insert(escrowPayment).values({
      ...{ id, contract, payer: movement.from, receiver: movement.to, amount },
      ...{ preApprovalExpiry, authorizationExpiry, refundExpiry, salt, refundableFrom, status: "held" },
      ...{ heldTransaction: transaction.hash, heldBlock: Number(block.number), heldAt: Number(block.timestamp) },
      credited: false,
    });
    await db.insert(escrowOpen).values({ refundableFrom, id });
    awaitMoney(contract, { from: movement.from, value: amount, transaction: transaction.hash });
    await recordHold(db, movement, { block, transaction, isCollected: isOperator(contract) });
  });

  ponder.on("Escrow:Released", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    const [contract, movement] = [lower(log.address), movementOf(args)];
    // An operator pays out the fee immediately, with the rest.
    const owed = isOperator(contract) ? 0n : args.fee;
    await post(db, contract, { held: -args.amount, owed, fees: args.fee });
    const outcome = { status: "released", record: args.record, fee: args.fee, block, transaction } as const;
    const { heldBlock } = await settle(db, args.id, outcome);
    await noteOutcome(db, movement, outcome);
    await recordRelease(db, movement, { block, heldBlock });
  });

  ponder.on("Escrow:Refunded", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    await post(db, lower(log.address), { held: -args.amount });
    const outcome = { status: "refunded", record: args.record, fee: null, block, transaction } as const;
    await settle(db, args.id, outcome);
    if (args.record !== NO_RECORD) await noteOutcome(db, movementOf(args), outcome);
  });

  ponder.on("Escrow:Credited", async ({ event: { args, log }, context: { db } }) => {
    // USDC refused the payout.
    await post(db, lower(log.address), { owed: args.amount });
    await db.update(escrowPayment, { id: args.id }).set({ credited: true });
  });

  ponder.on("Escrow:Withdrawn", async ({ event: { args, log }, context: { db } }) => {
    await post(db, lower(log.address), { owed: -args.amount, withdrawn: args.amount });
  });
}

if (CUSTODIES.length > 0) {
  // Other operators' payments are reclaimed too, but only our holds have a row.
  ponder.on("Custody:PaymentReclaimed", async ({ event: { args, block, transaction }, context: { db } }) => {
    const hold = await db.find(escrowPayment, { id: args.paymentInfoHash });
    if (hold?.status !== "held") return;
    await post(db, hold.contract, { held: -hold.amount });
    await settle(db, hold.id, { status: "refunded", record: NO_RECORD, fee: null, block, transaction });
  });
}
