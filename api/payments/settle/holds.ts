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
 * What an ordinary account's hold may use within a batch, and in a transaction of its own. The dearest, where nothing was
 * ever held before, needs 110,600 and 137,300; over base/commerce-payments 188,100 and 194,700.
 */
export const HOLD_GAS = { own: { call: 130_000n, single: 170_000n }, operator: { call: 220_000n, single: 250_000n } };
/** What a batch may use besides, and what a call takes with its calldata and the loop around it. */
const BATCH = { transaction: 60_000n, call: 16_000n };

const gasOf = ({ contract, collector }: Pick<SignedHold, "contract" | "collector">) =>
  collector === contract ? HOLD_GAS.own : HOLD_GAS.operator;

/** How holds of one contract share a transaction. */
export const holdsOf = (contract: Address): BatchFormat<SignedHold> => ({
  payerOf: ({ info: { payer }, nonce }) => ({ payer, nonce }),
  fits: (hold) => hold.contract === contract && isCanonical(hold.signature),
  several: (holds) => holdBatch(contract, holds),
  single: (hold) => ({ to: contract, data: authorizeData(hold), gas: gasOf(hold).single }),
});

/** The call that makes holds of one contract, in their order. */
function holdBatch(contract: Address, holds: readonly SignedHold[]) {
  const [cap = HOLD_GAS.own.call] = holds.map((hold) => gasOf(hold).call);
  return {
    to: SETTLEMENT_BATCH.address,
    data: holdsData(contract, cap, holds.map(authorizeData)),
    // A call gets at most 63/64 of the gas that is left (EIP-150).
    gas: BATCH.transaction + BigInt(holds.length) * ((cap * 64n) / 63n + BATCH.call),
  };
}

const { escrow, collector } = COMMERCE_PAYMENTS;
/** Collects payments, as opposed to refunds. */
const PAYMENT_COLLECTOR = 0n;

/** Every field has a value of its own, as large as it can be. */
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
 * Checks that base/commerce-payments is on the chain, where and as `contracts/ArbiterOperator.sol` expects it: its hashes
 * are ours, and its collector collects payments for it.
 * @throws Error that says what is there instead.
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
      throw new Error(`base/commerce-payments is another: ${what} is ${got[index]}; expected ${value}.`);
}

/** The call that places a hold. Anybody may make it. */
export const authorizeData = ({ collector, info, signature }: Omit<SignedHold, "contract" | "nonce">): Hex =>
  encodeFunctionData({
    abi: escrowAbi,
    functionName: "authorize",
    args: [info, info.maxAmount, collector, signature],
  });

/** The settlement batch's call for several calls of one contract. */
const holdsData = (contract: Address, gasCap: bigint, calls: readonly Hex[]): Hex =>
  encodeFunctionData({ abi: settlementBatchAbi, functionName: "hold", args: [contract, gasCap, calls] });
