import { type Context, ponder } from "ponder:registry";
import { escrowAccount, escrowContract, escrowOpen, escrowParty, escrowPayment } from "ponder:schema";
import {
  addToAccount,
  addToEscrow,
  NO_ACCOUNT_SUMS,
  NO_ESCROW_SUMS,
  type Posting,
  postCredited,
  postHeld,
  postRefunded,
  postReleased,
  postWithdrawn,
} from "../../escrow-ledger.ts";
import { isOperator } from "../../handlers/collected.ts";

type Address = `0x${string}`;
type Hex = `0x${string}`;
type Database = Context["db"];

const lower = (address: Address) => address.toLowerCase() as Address;
const partiesOf = (args: { payer: Address; receiver: Address; amount: bigint }) => ({
  payer: lower(args.payer),
  receiver: lower(args.receiver),
  amount: args.amount,
});

/** The contract's roles, known from its first event on. */
async function rolesOf(db: Database, contract: Address): Promise<typeof escrowContract.$inferSelect> {
  const roles = await db.find(escrowContract, { contract });
  if (roles) return roles;
  throw new Error(
    `${contract} is not an escrow, or ESCROW_START_BLOCK is after its deployment: no Opened event was found`,
  );
}

async function post(db: Database, contract: Address, { accounts, escrow }: Posting): Promise<void> {
  await rolesOf(db, contract);
  for (const { account, add } of accounts) {
    await db
      .insert(escrowAccount)
      .values({ account, contract, ...addToAccount(NO_ACCOUNT_SUMS, add) })
      .onConflictDoUpdate((row) => addToAccount(row, add));
  }
  await db.update(escrowContract, { contract }).set((row) => addToEscrow(row, escrow));
}

/** Of what no verdict ended. */
const NO_RECORD: Hex = `0x${"00".repeat(32)}`;

interface Outcome {
  readonly status: "released" | "refunded";
  readonly record: Hex;
  readonly fee: bigint | null;
  readonly block: { readonly number: bigint; readonly timestamp: bigint };
  readonly transaction: { readonly hash: Hex };
}

async function settle(db: Database, id: Hex, outcome: Outcome): Promise<void> {
  const { status, record, fee, block, transaction } = outcome;
  const { refundableFrom } = await db.update(escrowPayment, { id }).set({
    status,
    record,
    fee,
    outcomeTransaction: transaction.hash,
    outcomeBlock: Number(block.number),
    outcomeAt: Number(block.timestamp),
  });
  // By key, so that Ponder's row cache survives and a reorganization undoes it like any other change.
  await db.delete(escrowOpen, { refundableFrom, id });
}

ponder.on("Escrow:Opened", async ({ event: { args, log }, context: { db } }) => {
  await db.insert(escrowContract).values({
    contract: lower(log.address),
    usdc: lower(args.usdc),
    arbiter: lower(args.arbiter),
    feeRecipient: lower(args.feeRecipient),
    ...NO_ESCROW_SUMS,
  });
});

ponder.on("Escrow:Held", async ({ event: { args, block, log, transaction }, context: { db } }) => {
  const parties = partiesOf(args);
  const { id, preApprovalExpiry, authorizationExpiry, refundExpiry, salt, refundableFrom } = args;
  await post(db, lower(log.address), postHeld(parties));
  await db.insert(escrowPayment).values({
    ...{ id, contract: lower(log.address), ...parties },
    ...{ preApprovalExpiry, authorizationExpiry, refundExpiry, salt, refundableFrom },
    status: "held",
    heldTransaction: transaction.hash,
    heldBlock: Number(block.number),
    heldAt: Number(block.timestamp),
    credited: false,
  });
  await db.insert(escrowOpen).values({ refundableFrom, id });
  const place = { block: Number(block.number), logIndex: log.logIndex, id };
  await db.insert(escrowParty).values([
    { account: parties.payer, role: "payer", ...place },
    { account: parties.receiver, role: "receiver", ...place },
  ]);
});

ponder.on("Escrow:Released", async ({ event: { args, block, log, transaction }, context: { db } }) => {
  const parties = partiesOf(args);
  const { feeRecipient } = await rolesOf(db, lower(log.address));
  const owed = isOperator(lower(log.address)) ? null : feeRecipient;
  await post(db, lower(log.address), postReleased({ ...parties, fee: args.fee }, owed));
  await settle(db, args.id, { status: "released", record: args.record, fee: args.fee, block, transaction });
});

ponder.on("Escrow:Refunded", async ({ event: { args, block, log, transaction }, context: { db } }) => {
  const parties = partiesOf(args);
  await post(db, lower(log.address), postRefunded(parties));
  await settle(db, args.id, { status: "refunded", record: args.record, fee: null, block, transaction });
});

ponder.on("Escrow:Credited", async ({ event: { args, log }, context: { db } }) => {
  await post(db, lower(log.address), postCredited({ account: lower(args.account), amount: args.amount }));
  await db.update(escrowPayment, { id: args.id }).set({ credited: true });
});

ponder.on("Escrow:Withdrawn", async ({ event: { args, log }, context: { db } }) => {
  await post(db, lower(log.address), postWithdrawn({ account: lower(args.account), amount: args.amount }));
});

// Ponder refuses handlers for a contract missing from its configuration.
if (process.env.CUSTODIES) {
  // Other people's too: only a hold of ours has a row.
  ponder.on("Custody:PaymentReclaimed", async ({ event: { args, block, transaction }, context: { db } }) => {
    const hold = await db.find(escrowPayment, { id: args.paymentInfoHash });
    if (hold?.status !== "held") return;
    await post(db, hold.contract, postRefunded(hold));
    await settle(db, hold.id, { status: "refunded", record: NO_RECORD, fee: null, block, transaction });
  });
}
