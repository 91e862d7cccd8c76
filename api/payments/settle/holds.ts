import { BaseError, ContractFunctionRevertedError, type PublicClient } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import { commercePaymentsErrorsAbi } from "../../../contracts/commerce-payments.ts";
import { isWrapped } from "../../../packages/escrow/src/signature-forms.ts";
import { keccak256 } from "../../platform/chain/keccak.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { HoldFailure, Holds, SignedHold } from "../schemes/escrowed/holds.ts";
import type { Batching } from "./batching.ts";
import { authorizeData } from "../../escrow/calldata.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import { discreet } from "../../platform/chain/rpc-errors.ts";
import { assertWorthwhile, type CostCeiling, failureOf, MOST_GAS, mostFeeFor, tooMuchGas } from "./simulation.ts";

const MINED_WITHIN_MS = 20_000;
/** The most gas that a hold over base/commerce-payments may use: an ordinary account's needs about 176,000. */
const MOST_GAS_BY_OPERATOR = 250_000n;
/** The same if the payer's wallet is deployed on the way (ERC-6492): one by a common factory took 664,000. */
const MOST_GAS_WITH_WALLET = 1_000_000n;
const ABI = [...escrowAbi, ...commercePaymentsErrorsAbi] as const;

export interface HoldsParts {
  readonly client: PublicClient;
  /** The arbiter's; null if no escrow contract is configured. */
  readonly relayer: Relayer | null;
  readonly ceiling: CostCeiling | null;
  /** What holds of a contract share transactions by; null for a contract of which none do. */
  readonly batchingOf: (contract: Address) => Batching<SignedHold> | null;
}

/** The arbiter's relayer sends holds, and none while that costs too much. */
export const createHolds = ({ client, relayer, ceiling, batchingOf }: HoldsParts): Holds => ({
  failure: discreet(async (hold) => {
    await assertWorthwhile(relayer, ceiling, hold.info.maxAmount);
    const shared = await batchingOf(hold.contract)
      ?.simulate(hold)
      .catch(() => null);
    return shared ? null : failure(client, relayer, hold);
  }),
  make: discreet(async (hold, lease) => {
    if (relayer === null)
      throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
    const purpose = purposeOf(hold.info.payer, hold.nonce);
    const member = { purpose, lease, mostFee: mostFeeFor(ceiling, hold.info.maxAmount) };
    const batching = batchingOf(hold.contract);
    if (await batching?.submit({ transfer: hold, ...member })) return;
    const lane = (await batching?.laneOf(hold)) ?? "alone";
    const call = { to: hold.contract, data: authorizeData(hold), gas: limitOf(hold) ?? MOST_GAS, lane };
    const { status } = await relayer.waitFor(await relayer.send({ ...call, ...member }), MINED_WITHIN_MS);
    if (status !== "success") throw new Error("the hold reverted");
  }),
  failed: async (payer, nonce) => relayer?.failed(purposeOf(payer, nonce)) ?? null,
});

/** The nonce binds all terms but the payer: anybody can sign the same ones. */
const purposeOf = (payer: Address, nonce: Hex): Hex => keccak256(`${payer}${nonce.slice(2)}`);

/**
 * A limit of its own for a hold whose signature may name a contract to be called: one took 56 million in an estimate.
 * Undefined where USDC alone decides what is called.
 */
function limitOf({ contract, collector, signature }: SignedHold): bigint | undefined {
  if (collector === contract) return undefined;
  return isWrapped(signature) ? MOST_GAS_WITH_WALLET : MOST_GAS_BY_OPERATOR;
}

const callOf = ({ collector, info, signature }: SignedHold) =>
  ({ abi: ABI, functionName: "authorize", args: [info, info.maxAmount, collector, signature] }) as const;

async function failure(client: PublicClient, relayer: Relayer | null, hold: SignedHold): Promise<HoldFailure | null> {
  const call = { address: hold.contract, ...callOf(hold) };
  const limit = limitOf(hold);
  const failed = await failureOf(relayer, (using) => client.simulateContract({ ...call, ...using }), limit);
  if (failed === null) return null;
  return failed === "needs more gas" ? { name: null, text: tooMuchGas(limit) } : reasonOf(failed.error);
}

function reasonOf(error: unknown): HoldFailure {
  const reverted = error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError);
  if (!(reverted instanceof ContractFunctionRevertedError)) throw error;
  const name = reverted.data?.errorName ?? "Error";
  return { name, text: reverted.reason ?? reverted.data?.errorName ?? "it reverted" };
}
