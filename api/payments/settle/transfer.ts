import { encodeFunctionData, type PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import { discreet, revertReason } from "../../platform/chain/rpc.ts";
import type { Authorization, Head } from "../../platform/chain/view.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import type { Hex } from "../../platform/wallet.ts";
import type { Refusal } from "../refusal.ts";
import type { TransferSimulator } from "../schemes/exact.ts";
import type { BatchFormat } from "./batching-chain.ts";
import { type BatchTerms, batchCall, isPackable, type SignedTransfer } from "./settlement-batch.ts";
import {
  assertWorthwhile,
  type CostCeiling,
  comparedBalance,
  failureOf,
  type SentBy,
  tooMuchGas,
} from "./simulation.ts";

const REFUSALS: readonly (readonly [RegExp, Refusal])[] = [
  [
    /blacklist/i,
    {
      code: "invalid_exact_evm_transaction_simulation_failed",
      retry: "never",
      error: "Circle has blacklisted an account in this payment, so USDC refuses the transfer.",
    },
  ],
  [
    /paused/i,
    {
      code: "invalid_exact_evm_transaction_simulation_failed",
      error: "USDC transfers are currently paused; nothing was charged.",
    },
  ],
  [
    /used or canceled/i,
    {
      code: "invalid_exact_evm_nonce_already_used",
      error: "This authorization's nonce has already been used or canceled.",
    },
  ],
  [/invalid signature/i, { code: "invalid_exact_evm_signature", error: "The USDC contract rejects the signature." }],
  [
    /not yet valid/i,
    { code: "invalid_exact_evm_payload_authorization_valid_after", error: "The authorization is not valid yet." },
  ],
  [
    /expired/i,
    { code: "invalid_exact_evm_payload_authorization_valid_before", error: "The authorization has expired." },
  ],
];

const callOf = ({ from, to, value, validAfter, validBefore, nonce }: Authorization, signature: Hex) =>
  ({
    abi: usdcAbi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  }) as const;

/** Encodes the calldata of a transfer, for the simulation and for the transaction. */
export const transferData = (authorization: Authorization, signature: Hex): Hex =>
  encodeFunctionData(callOf(authorization, signature));

export interface SimulatorParts {
  readonly client: PublicClient;
  readonly network: NetworkFacts;
  readonly sentBy: SentBy;
  readonly ceiling: CostCeiling | null;
  /** Simulates the transfer in a batch: the head if it would settle, null if it must be simulated alone. */
  readonly simulateTogether: (transfer: { authorization: Authorization; signature: Hex }) => Promise<Head | null>;
}

/** Creates a simulator of transfers, which rejects while settling them costs too much. */
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
    const refused = failure && (await refusalOf(failure, { client, network, authorization }));
    return { refused, head: { number: Number(number), time: timestamp } };
  }),
});

interface Refused extends Pick<SimulatorParts, "client" | "network"> {
  readonly authorization: Authorization;
}

async function refusalOf(
  failure: NonNullable<Awaited<ReturnType<typeof failureOf>>>,
  { client, network, authorization: { from, value } }: Refused,
): Promise<Refusal> {
  const code = "invalid_exact_evm_transaction_simulation_failed";
  if (failure === "needs more gas") return { code, retry: "never", error: tooMuchGas() };
  const reason = revertReason(failure.error);
  if (/exceeds balance/i.test(reason))
    return {
      code: "insufficient_funds",
      error: `The payer's USDC balance is too low for this payment: ${await comparedBalance(client, network, { payer: from, price: value })}. Add funds, then sign a new one.`,
    };
  const known = REFUSALS.find(([pattern]) => pattern.test(reason))?.[1];
  return known ?? { code, error: `The USDC contract refuses the transfer: ${reason}.` };
}

/** The gas limit of a single payment. An ordinary account needs at most 103,312. */
const SINGLE_GAS = 130_000n;

/** Returns the batch format for transfers to one payee. */
export const transfersTo = (terms: BatchTerms): BatchFormat<SignedTransfer> => ({
  payerOf: ({ authorization: { from: payer, nonce } }) => ({ payer, nonce }),
  fits: (transfer) => transfer.authorization.to === terms.payTo && isPackable(transfer),
  several: (transfers) => batchCall(terms, transfers),
  single: ({ authorization, signature }) => ({
    to: terms.usdc,
    data: transferData(authorization, signature),
    gas: SINGLE_GAS,
  }),
});
