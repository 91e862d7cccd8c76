import { BaseError, ContractFunctionRevertedError, encodeFunctionData, type PublicClient } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import {
  COMMERCE_PAYMENTS,
  commercePaymentsAbi,
  commercePaymentsErrorsAbi,
} from "../../../contracts/commerce-payments.ts";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import { PAYMENT_INFO_TYPEHASH, type PaymentInfo, paymentId } from "../../../packages/escrow/src/payment-info.ts";
import { isWrapped } from "../../../packages/escrow/src/signature-forms.ts";
import { discreet } from "../../platform/chain/rpc.ts";
import { keccak256 } from "../../platform/chain/typed-data.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { type HoldFailure, type Holds, isShort, type SignedHold } from "../schemes/escrowed.ts";
import type { BatchFormat, Batching } from "./batching-chain.ts";
import { isCanonical } from "./settlement-batch.ts";
import {
  assertWorthwhile,
  type CostCeiling,
  comparedBalance,
  failureOf,
  MOST_GAS,
  mostFeeFor,
  tooMuchGas,
} from "./simulation.ts";

const MINED_WITHIN_MS = 20_000;
/** The gas limit of a hold through base/commerce-payments. A hold by an ordinary account needs about 176,000. */
const MOST_GAS_BY_OPERATOR = 250_000n;
/** The same if the payer's wallet is deployed in the call (ERC-6492). One by a common factory took 664,000. */
const MOST_GAS_WITH_WALLET = 1_000_000n;
const ABI = [...escrowAbi, ...commercePaymentsErrorsAbi] as const;

export interface HoldsParts {
  readonly client: PublicClient;
  /** The arbiter's relayer; null if no escrow contract is configured. */
  readonly relayer: Relayer | null;
  readonly ceiling: CostCeiling | null;
  /** The batching of a contract's holds; null for a contract whose holds are sent alone. */
  readonly batchingOf: (contract: Address) => Batching<SignedHold> | null;
}

/** Creates the holds, sent by the arbiter's relayer while the cost is below the ceiling. */
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

/** The nonce binds all terms except the payer, so different payers can sign the same nonce. */
const purposeOf = (payer: Address, nonce: Hex): Hex => keccak256(`${payer}${nonce.slice(2)}`);

/**
 * Returns the gas limit of a hold whose signature may name a contract to be called: one estimate was 56 million.
 * Undefined if USDC alone decides which contract is called.
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
  if (failed === "needs more gas") return { name: null, text: tooMuchGas(limit) };
  const reason = reasonOf(failed.error);
  const network = Object.values(NETWORKS).find(({ usdc }) => usdc.address === hold.info.token);
  if (network === undefined || !isShort(reason)) return reason;
  const { payer, maxAmount: price } = hold.info;
  return { ...reason, text: `${reason.text} (${await comparedBalance(client, network, { payer, price })})` };
}

function reasonOf(error: unknown): HoldFailure {
  const reverted = error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError);
  if (!(reverted instanceof ContractFunctionRevertedError)) throw error;
  const name = reverted.data?.errorName ?? "Error";
  return { name, text: reverted.reason ?? reverted.data?.errorName ?? "it reverted" };
}

/**
 * The gas limits of an ordinary account's hold, in a batch and alone. The most expensive, with every storage slot still
 * empty, needs 110,600 and 137,300; through base/commerce-payments 188,100 and 194,700.
 */
export const HOLD_GAS = { own: { call: 130_000n, single: 170_000n }, operator: { call: 220_000n, single: 250_000n } };
/** The overhead of a batch, and of each call with its calldata and the loop around it. */
const BATCH = { transaction: 60_000n, call: 16_000n };

const gasOf = ({ contract, collector }: Pick<SignedHold, "contract" | "collector">) =>
  collector === contract ? HOLD_GAS.own : HOLD_GAS.operator;

/** Returns the batch format for holds of one contract. */
export const holdsOf = (contract: Address): BatchFormat<SignedHold> => ({
  payerOf: ({ info: { payer }, nonce }) => ({ payer, nonce }),
  fits: (hold) => hold.contract === contract && isCanonical(hold.signature),
  several: (holds) => holdBatch(contract, holds),
  single: (hold) => ({ to: contract, data: authorizeData(hold), gas: gasOf(hold).single }),
});

/** Returns the call that makes holds of one contract, in their order. */
function holdBatch(contract: Address, holds: readonly SignedHold[]) {
  const [cap = HOLD_GAS.own.call] = holds.map((hold) => gasOf(hold).call);
  return {
    to: SETTLEMENT_BATCH.address,
    data: holdsData(contract, cap, holds.map(authorizeData)),
    // A call gets at most 63/64 of the remaining gas (EIP-150).
    gas: BATCH.transaction + BigInt(holds.length) * ((cap * 64n) / 63n + BATCH.call),
  };
}

const { escrow, collector } = COMMERCE_PAYMENTS;
/** The type of a collector for payments, as opposed to refunds. */
const PAYMENT_COLLECTOR = 0n;

/** Every field has a distinct value, as large as possible. */
const SAMPLE: PaymentInfo = {
  operator: "0x1111111111111111111111111111111111111111",
  payer: "0x2222222222222222222222222222222222222222",
  receiver: "0x3333333333333333333333333333333333333333",
  token: "0x4444444444444444444444444444444444444444",
  maxAmount: 2n ** 120n - 1n,
  preApprovalExpiry: 2 ** 48 - 3,
  authorizationExpiry: 2 ** 48 - 2,
  refundExpiry: 2 ** 48 - 1,
  minFeeBps: 65_534,
  maxFeeBps: 65_535,
  feeReceiver: "0x5555555555555555555555555555555555555555",
  salt: 2n ** 256n - 1n,
};

/**
 * Checks that base/commerce-payments is on the chain, where and as `contracts/ArbiterOperator.sol` expects it: its
 * hashes match ours, and its collector collects payments for it.
 * @throws Error that names the difference.
 */
export async function requireCommercePayments(client: PublicClient): Promise<void> {
  const wanted = [
    ["PAYMENT_INFO_TYPEHASH() of the escrow", PAYMENT_INFO_TYPEHASH],
    ["getHash(…) of the escrow", paymentId({ chainId: await client.getChainId(), escrow }, SAMPLE)],
    ["authCaptureEscrow() of the collector", escrow],
    ["collectorType() of the collector", PAYMENT_COLLECTOR],
  ] as const;
  const [ofEscrow, ofCollector] = [
    { address: escrow, abi: commercePaymentsAbi },
    { address: collector, abi: commercePaymentsAbi },
  ] as const;
  const got = await Promise.all([
    client.readContract({ ...ofEscrow, functionName: "PAYMENT_INFO_TYPEHASH" }),
    client.readContract({ ...ofEscrow, functionName: "getHash", args: [SAMPLE] }),
    client.readContract({ ...ofCollector, functionName: "authCaptureEscrow" }),
    client.readContract({ ...ofCollector, functionName: "collectorType" }),
  ]).catch((cause: unknown) => {
    const reason = cause instanceof BaseError ? cause.shortMessage : "the node did not answer";
    throw new Error(`base/commerce-payments is not at ${escrow} and ${collector}: ${reason}`, { cause });
  });
  for (const [index, [what, value]] of wanted.entries())
    if (String(got[index]).toLowerCase() !== String(value).toLowerCase())
      throw new Error(`base/commerce-payments differs: ${what} is ${got[index]}; expected ${value}.`);
}

/** Encodes the call that places a hold. Any account may make it. */
export const authorizeData = ({ collector, info, signature }: Omit<SignedHold, "contract" | "nonce">): Hex =>
  encodeFunctionData({
    abi: escrowAbi,
    functionName: "authorize",
    args: [info, info.maxAmount, collector, signature],
  });

/** Encodes the settlement batch's call for several calls of one contract. */
const holdsData = (contract: Address, gasCap: bigint, calls: readonly Hex[]): Hex =>
  encodeFunctionData({ abi: settlementBatchAbi, functionName: "hold", args: [contract, gasCap, calls] });
