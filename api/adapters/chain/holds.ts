import {
  BaseError,
  ContractFunctionRevertedError,
  concat,
  encodeFunctionData,
  keccak256,
  type PublicClient,
} from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Holds, SignedHold } from "../../payments/commerce/scheme.ts";
import type { Relayer } from "./relayer/relayer.ts";
import { discreet } from "./rpc-errors.ts";
import { assertWorthwhile, type CostCeiling, failureOf, MOST_GAS, TOO_MUCH_GAS } from "./simulation.ts";

const MINED_WITHIN_MS = 20_000;

export interface HoldsParts {
  readonly client: PublicClient;
  /** The arbiter's; null if no escrow contract is configured. */
  readonly relayer: Relayer | null;
  readonly ceiling: CostCeiling | null;
}

/** The arbiter's relayer sends holds, and none while that costs too much. */
export const createHolds = ({ client, relayer, ceiling }: HoldsParts): Holds => ({
  refusal: discreet(async (hold) => {
    await assertWorthwhile(relayer, ceiling, hold.info.maxAmount);
    return refusal(client, relayer, hold);
  }),
  make: discreet(async (hold) => {
    if (relayer === null)
      throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
    const { contract: to, info, nonce } = hold;
    const data = encodeFunctionData(callOf(hold));
    const purpose = purposeOf(info.payer, nonce);
    const transaction = await relayer.send({ to, data, gas: MOST_GAS, purpose });
    const { status } = await relayer.waitFor(transaction, MINED_WITHIN_MS);
    if (status !== "success") throw new Error("the hold reverted");
  }),
  failed: async (payer, nonce) => relayer?.failed(purposeOf(payer, nonce)) ?? null,
});

/** The nonce binds all terms but the payer: anybody can sign the same ones. */
const purposeOf = (payer: Address, nonce: Hex): Hex => keccak256(concat([payer, nonce]));

const callOf = ({ contract, info, signature }: SignedHold) =>
  ({ abi: escrowAbi, functionName: "authorize", args: [info, info.maxAmount, contract, signature] }) as const;

async function refusal(client: PublicClient, relayer: Relayer | null, hold: SignedHold): Promise<string | null> {
  const call = { address: hold.contract, ...callOf(hold) };
  const failure = await failureOf(relayer, (using) => client.simulateContract({ ...call, ...using }));
  if (failure === null) return null;
  return failure === "needs more gas"
    ? TOO_MUCH_GAS
    : `The hold would fail on-chain: ${reasonOf(failure.error)}. Nothing was charged.`;
}

function reasonOf(error: unknown): string {
  const reverted = error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError);
  if (!(reverted instanceof ContractFunctionRevertedError)) throw error;
  return reverted.reason ?? reverted.data?.errorName ?? "it reverted";
}
