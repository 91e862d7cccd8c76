import { decodeFunctionResult, encodeFunctionData, type PublicClient } from "viem";
import { escrowAbi as abi } from "../../contracts/abi.ts";
import type { HoldState } from "./escrow-ports.ts";
import { STATUSES } from "./payment.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import { type Call, readAtBlock } from "../platform/chain/read-at-block.ts";
import { together } from "../platform/chain/together.ts";

/** Those that ask at the same time share a call. */
const READS = { most: 100, underWay: 4, waitMs: 5 };

/** One payment, as one contract knows it. */
export interface HeldAt {
  readonly contract: Address;
  readonly payment: Hex;
}

const stateOf = ({ contract, payment }: HeldAt): Call<readonly [status: number, refundableFrom: number]> => ({
  target: contract,
  callData: encodeFunctionData({ abi, functionName: "payments", args: [payment] }),
  decode: (data) => decodeFunctionResult({ abi, functionName: "payments", data }),
});

/** What contracts say of payments, all at one block, in one call. */
async function readStates(client: PublicClient, payments: readonly HeldAt[]): Promise<readonly HoldState[]> {
  const calls = payments.map(stateOf);
  const { number, time, of } = await readAtBlock(client, { calls });
  return calls.map((call) => {
    const [status, refundableFrom] = of(call);
    return { status: STATUSES[status] ?? "none", refundableFrom, time: Number(time), block: Number(number) };
  });
}

/** Reads the state of one payment at the head. */
export const createStates = (client: PublicClient): ((payment: HeldAt) => Promise<HoldState>) =>
  together((payments: readonly HeldAt[]) => readStates(client, payments), READS);
