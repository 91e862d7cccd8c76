import type { PublicClient } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { HoldState } from "../../escrow/escrow-ports.ts";
import { STATUSES } from "../../escrow/payment.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { AT_BLOCK, MULTICALL3 } from "./multicall.ts";
import { together } from "./together.ts";

/** Those that ask at the same time share a call. */
const READS = { most: 100, underWay: 4, waitMs: 5 };

/** One payment, as one contract knows it. */
export interface HeldAt {
  readonly contract: Address;
  readonly payment: Hex;
}

/** What contracts say of payments, all at one block, in one call. */
async function readStates(client: PublicClient, payments: readonly HeldAt[]): Promise<readonly HoldState[]> {
  const asked = payments.map(({ contract, payment }) => ({
    address: contract,
    abi: escrowAbi,
    functionName: "payments",
    args: [payment],
  }));
  // viem's types cannot follow a list of unknown length behind the two.
  const [number, time, ...states] = (await client.multicall({
    allowFailure: false,
    multicallAddress: MULTICALL3,
    batchSize: 0,
    contracts: [...AT_BLOCK, ...asked] as never,
  })) as unknown as [bigint, bigint, ...(readonly [status: number, refundableFrom: number])[]];
  return states.map(([status, refundableFrom]) => ({
    status: STATUSES[status] ?? "none",
    refundableFrom,
    time: Number(time),
    block: Number(number),
  }));
}

/** Reads the state of one payment at the head. */
export const createStates = (client: PublicClient): ((payment: HeldAt) => Promise<HoldState>) =>
  together((payments: readonly HeldAt[]) => readStates(client, payments), READS);
