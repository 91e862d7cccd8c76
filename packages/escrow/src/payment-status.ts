import type { Address, Client, Hex } from "viem";
import { readContract } from "viem/actions";
import { escrowAbi } from "./abi.ts";

/** The state of a payment: from none to held, then to released or refunded, never back. */
export type PaymentStatus = "none" | "held" | "released" | "refunded";

const STATUSES: readonly PaymentStatus[] = ["none", "held", "released", "refunded"];

export interface PaymentState {
  readonly status: PaymentStatus;
  /** Unix seconds from which anyone may refund it; 0 if it was never held. */
  readonly refundableFrom: number;
}

export async function readPayment(client: Client, escrow: Address, id: Hex): Promise<PaymentState> {
  const call = { address: escrow, abi: escrowAbi, functionName: "payments", args: [id] } as const;
  const [code, refundableFrom] = await readContract(client, call);
  const status = STATUSES[code];
  if (status === undefined)
    throw new Error(`${escrow} returned status ${code} for payment ${id}: it is not the escrow.`);
  return { status, refundableFrom };
}
