import { concat, keccak256, type PublicClient, type TransactionReceipt } from "viem";
import { MOST_GAS } from "../payments/index.ts";
import type { SigningAccount } from "../platform/chain/accounts.ts";
import { createBatcher } from "../platform/chain/batcher.ts";
import { discreet } from "../platform/chain/rpc.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import type { Network } from "../platform/networks.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import type { Hex } from "../platform/wallet.ts";
import {
  type Carriable,
  endingData,
  outcomeBatch,
  outcomePurpose,
  servedBy,
  succeedingIn,
  verdictTypedData,
} from "./calldata.ts";
import type { Block } from "./chain.ts";
import type { Task } from "./store.ts";

/** Sends to the escrow contracts. */
export interface EscrowSender {
  /**
   * Sends the arbiter's decision, together with others that wait, and waits for its block. Never sends a second time
   * unless the first was mined without effect. Rejects if nothing could be sent.
   */
  carry(task: Task): Promise<Carried>;
}

/** Mined in a block, not mined in time, or mined without effect. */
export type Carried =
  | ({ readonly type: "mined"; readonly transaction: Hex; readonly gas: bigint } & Block)
  | { readonly type: "pending" | "failed"; readonly transaction: Hex };

/**
 * Transactions are sent immediately while none is unmined; otherwise when that one is mined, 50 outcomes wait, or the
 * first has waited for half a block.
 */
const DEPARTURES = { most: 50, underWay: 4, waitMs: 1_000 };
const MINED_WITHIN_MS = 20_000;

export interface EscrowSenderParts {
  readonly client: PublicClient;
  readonly network: Network;
  readonly relayer: Relayer;
  /** The arbiter, which owns this relayer. */
  readonly arbiter: Pick<SigningAccount, "signTypedData">;
  readonly log: { warn(facts: object, message: string): void };
  readonly meter: Pick<Meter, "outcomes"> | null;
}

/**
 * Creates the sender that carries outcomes to the contract with the arbiter's own key, those that wait at the same time
 * in one transaction. An outcome whose transaction was mined without effect is then sent alone. With null, no escrow
 * contract is configured.
 */
export function createEscrowSender(parts: EscrowSenderParts | null): EscrowSender {
  if (parts === null)
    return {
      async carry() {
        throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
      },
    };
  const { relayer } = parts;
  const carried = createBatcher((tasks: readonly Task[]) => carry(parts, tasks), DEPARTURES);
  return {
    carry: discreet(async (task) => {
      if ((await relayer.failed(purposeOf(task))) !== null) return alone(relayer, task);
      const ended = await carried(task);
      if (ended instanceof Error) throw ended;
      return ended;
    }),
  };
}

/** Sends the calls that succeed in a simulation in one transaction, and the others one by one. */
async function carry(parts: EscrowSenderParts, tasks: readonly Task[]): Promise<readonly (Carried | Error)[]> {
  const { client, relayer } = parts;
  if (tasks.length === 1) return Promise.all(tasks.map((task) => orProblem(alone(relayer, task))));
  const calls = await Promise.all(tasks.map((task) => carriable(parts, task)));
  const succeeding = await succeedingIn(client, relayer.address, calls);
  const good = tasks.flatMap((task, place) => (succeeding[place] === true ? [{ task, call: calls[place] }] : []));
  const shared = good.length > 1 ? ship(parts, new Map(good.map(({ task, call }) => [task, call as Carriable]))) : null;
  return Promise.all(
    tasks.map(async (task, place) =>
      shared !== null && succeeding[place] === true
        ? ((await shared).get(task) ?? new Error("an outcome was not sent"))
        : orProblem(alone(relayer, task)),
    ),
  );
}

/** Sends one transaction for all of them except those that another process has sent by now. */
async function ship(
  parts: EscrowSenderParts,
  calls: ReadonlyMap<Task, Carriable>,
): Promise<ReadonlyMap<Task, Carried | Error>> {
  const { relayer } = parts;
  const members = [...calls].map(([task, call]) => ({ task, call, purpose: purposeOf(task) }));
  const callOf = new Map(members.map(({ purpose, call }) => [purpose, call]));
  const carriers = await relayer.ship({
    lane: "outcome",
    members: members.map(({ purpose }) => ({ purpose })),
    callFor: (purposes) => outcomeBatch(purposes.flatMap((purpose) => callOf.get(purpose) ?? [])),
  });
  const hashes = new Set([...carriers.values()].filter((carrier) => typeof carrier === "string"));
  const receipts = new Map(
    await Promise.all([...hashes].map(async (hash) => [hash, await receiptOf(relayer, hash)] as const)),
  );
  const served = new Map(
    [...receipts].map(([hash, receipt]) => [hash, receipt === null ? null : judge(parts, receipt)]),
  );
  return new Map(
    members.map(({ task, purpose }): [Task, Carried | Error] => {
      const carrier = carriers.get(purpose) ?? new Error("an outcome was not sent");
      if (typeof carrier !== "string") return [task, carrier];
      return [task, endedIn(carrier, receipts.get(carrier) ?? null, shareOf(purpose, served.get(carrier)))];
    }),
  );
}

/**
 * Records the outcome of a shared transaction. Returns the purposes that it served, or null if it carried a single
 * outcome.
 */
function judge({ network, log, meter }: EscrowSenderParts, receipt: TransactionReceipt): readonly Hex[] | null {
  const served = servedBy(receipt);
  if (served === null) return null;
  meter?.outcomes(network, { served: served.length, gas: receipt.gasUsed });
  if (receipt.status === "reverted") log.warn({ transaction: receipt.transactionHash }, "a batch of outcomes reverted");
  return served;
}

/** Sends an outcome in a separate transaction, from the arbiter's own account, so that it needs no verdict. */
async function alone(relayer: Relayer, task: Task): Promise<Carried> {
  const purpose = await openPurpose(relayer, purposeOf(task));
  const call = { to: task.contract, data: dataOf(task, NO_VERDICT) };
  const transaction = await relayer.send({ ...call, gas: MOST_GAS, lane: "outcome", purpose });
  const receipt = await receiptOf(relayer, transaction);
  return endedIn(transaction, receipt, shareOf(purpose, receipt && servedBy(receipt)));
}

/**
 * An outcome is owed however often it reverts, for example while USDC is paused, and no other party's code can make it
 * revert. So each attempt has its own purpose, derived from the failed ones.
 */
async function openPurpose(relayer: Relayer, purpose: Hex): Promise<Hex> {
  const reverted = await relayer.failed(purpose);
  return reverted === null ? purpose : openPurpose(relayer, keccak256(concat([purpose, reverted])));
}

/** Returns null if the transaction was not mined in time. */
const receiptOf = (relayer: Relayer, transaction: Hex): Promise<TransactionReceipt | null> =>
  relayer.waitFor(transaction, MINED_WITHIN_MS).catch(() => null);

/** Returns the number of outcomes that share a transaction's gas with this one, or 0 if its call failed. */
function shareOf(purpose: Hex, served: readonly Hex[] | null | undefined): number {
  if (served === null || served === undefined) return 1;
  return served.includes(purpose) ? served.length : 0;
}

function endedIn(sent: Hex, receipt: TransactionReceipt | null, sharers: number): Carried {
  if (receipt === null) return { type: "pending", transaction: sent };
  const { transactionHash: transaction, blockNumber, blockHash, status, gasUsed } = receipt;
  if (status !== "success" || sharers === 0) return { type: "failed", transaction };
  return { type: "mined", transaction, block: Number(blockNumber), blockHash, gas: gasUsed / BigInt(sharers) };
}

const orProblem = (work: Promise<Carried>): Promise<Carried | Error> =>
  work.catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));

const NO_RECORD = `0x${"00".repeat(32)}` as const;
const NO_VERDICT = "0x";

/**
 * More than any release or refund uses: 80,000, to an account that USDC refuses to pay, if nothing was ever owed to it
 * or to the fee recipient; over base/commerce-payments 93,000. They call only USDC and the contract that holds the
 * money.
 */
export const OUTCOME_GAS = 120_000n;

const purposeOf = ({ payment, decision }: Task): Hex => outcomePurpose(payment, decision);

const dataOf = ({ decision, info, record }: Task, verdict: Hex): Hex =>
  endingData({ decision, info, record: record ?? NO_RECORD, verdict });

/** Returns the call that anyone may carry. Anyone may carry out the clock's decision, because the contract checks it. */
async function carriable({ arbiter }: EscrowSenderParts, task: Task): Promise<Carriable> {
  const verdict = task.record === null ? NO_VERDICT : await arbiter.signTypedData(verdictTypedData(task, task.record));
  return { to: task.contract, data: dataOf(task, verdict), gas: OUTCOME_GAS };
}
