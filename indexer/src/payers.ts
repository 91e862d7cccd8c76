import type { Context } from "ponder:registry";
import { floorBlock, payerSlot } from "ponder:schema";
import { SCOPE } from "../environment.ts";
import { PAYER_SLOTS } from "../ledger.ts";

type Address = `0x${string}`;

interface Joined {
  readonly payer: Address;
  readonly payee: Address;
  /** How many payers the payee had before. */
  readonly ordinal: number;
  readonly block: bigint;
}

/** Notes who pays a payee, so that the score can look up who funded them. Only scope `selective` needs that. */
export async function notePayer(db: Context["db"], { payer, payee, ordinal, block }: Joined): Promise<void> {
  if (SCOPE !== "selective") return;
  await db
    .insert(payerSlot)
    .values({ payee, slot: ordinal % PAYER_SLOTS, payer, ordinal })
    .onConflictDoUpdate({ payer, ordinal });
  await db.insert(floorBlock).values({ payer, payee, block: Number(block) });
}
