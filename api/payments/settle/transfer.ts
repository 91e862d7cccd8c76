import { encodeFunctionData, type PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import { discreet, revertReason } from "../../platform/chain/rpc.ts";
import type { Authorization, Head } from "../../platform/chain/view.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import type { Hex } from "../../platform/wallet.ts";
import type { TransferSimulator } from "../schemes/exact.ts";
import type { Sharing } from "./batching-chain.ts";
import { type BatchTerms, batchCall, isPackable, type SignedTransfer } from "./settlement-batch.ts";
import { assertWorthwhile, type CostCeiling, failureOf, type SentBy, tooMuchGas } from "./simulation.ts";

const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/exceeds balance/i, "The payer's USDC balance is too low for this payment."],
  [/blacklist/i, "Circle has blacklisted an account in this payment, so USDC refuses the transfer."],
  [/paused/i, "USDC transfers are currently paused; nothing was charged."],
  [/used or canceled/i, "This authorization's nonce has already been used or canceled."],
  [/invalid signature/i, "The USDC contract rejects the signature."],
  [/not yet valid/i, "The authorization is not valid yet."],
  [/expired/i, "The authorization has expired."],
];

const callOf = ({ from, to, value, validAfter, validBefore, nonce }: Authorization, signature: Hex) =>
  ({
    abi: usdcAbi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  }) as const;

/** The calldata of a transfer: what is sent to USDC is what was simulated. */
export const transferData = (authorization: Authorization, signature: Hex): Hex =>
  encodeFunctionData(callOf(authorization, signature));

export interface SimulatorParts {
  readonly client: PublicClient;
  readonly network: NetworkFacts;
  readonly sentBy: SentBy;
  readonly ceiling: CostCeiling | null;
  /** A simulation with others at once: the head if the transfer would settle, null if it is to be simulated alone. */
  readonly simulateTogether: (transfer: { authorization: Authorization; signature: Hex }) => Promise<Head | null>;
}

/** Simulates transfers, and rejects while settling them costs too much. */
export const createTransferSimulator = ({
  client,
  network,
  sentBy,
  ceiling,
  simulateTogether,
}: SimulatorParts): TransferSimulator => ({
  simulate: discreet(async (authorization, signature) => {
    const { usdc } = network;
    await assertWorthwhile(sentBy, ceiling, authorization.value);
    const shared = await simulateTogether({ authorization, signature }).catch(() => null);
    if (shared !== null) return { refused: null, head: shared };
    const call = { address: usdc.address, ...callOf(authorization, signature) };
    const [failure, { number, timestamp }] = await Promise.all([
      failureOf(sentBy, (using) => client.simulateContract({ ...call, ...using })),
      client.getBlock(),
    ]);
    return { refused: failure && textOf(failure), head: { number: Number(number), time: timestamp } };
  }),
});

function textOf(failure: NonNullable<Awaited<ReturnType<typeof failureOf>>>): string {
  if (failure === "needs more gas") return tooMuchGas();
  const reason = revertReason(failure.error);
  return (
    REFUSALS.find(([pattern]) => pattern.test(reason))?.[1] ?? `The USDC contract refuses the transfer: ${reason}.`
  );
}

/** The gas limit of a payment by itself: an ordinary account's needs at most 103,312. */
const SINGLE_GAS = 130_000n;

/** How transfers to one payee settle together. */
export const transfersTo = (terms: BatchTerms): Sharing<SignedTransfer> => ({
  payerOf: ({ authorization: { from: payer, nonce } }) => ({ payer, nonce }),
  fits: (transfer) => transfer.authorization.to === terms.payTo && isPackable(transfer),
  several: (transfers) => batchCall(terms, transfers),
  single: ({ authorization, signature }) => ({
    to: terms.usdc,
    data: transferData(authorization, signature),
    gas: SINGLE_GAS,
  }),
});
