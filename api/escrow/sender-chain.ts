import { concat, keccak256, type PublicClient, type TransactionReceipt } from "viem";
import { MOST_GAS } from "../payments/index.ts";
import type { SigningAccount } from "../platform/chain/accounts.ts";
import { createBatcher } from "../platform/chain/batcher.ts";
import { discreet } from "../platform/chain/rpc.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import type { Network } from "../platform/networks.ts";
import type { Member } from "../platform/relayer/form.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import {
  type Carriable,
  endingData,
  outcomeBatch,
  outcomePurpose,
  servedBy,
  succeedingIn,
  verdictDigest,
  verdictTypedData,
} from "./calldata.ts";
import type { Block } from "./chain.ts";
import type { EscrowIndex } from "./index-store.ts";
import type { OverdueHolds } from "./refund-overdue.ts";
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

/** The end of one held payment: a call that the sender's own account makes, or one that anyone may carry. */
export interface Outcome extends Pick<Member, "purpose"> {
  readonly own: { readonly to: Address; readonly data: Hex };
  /** Costs a signature. */
  readonly carriable: () => Promise<Carriable>;
}

export interface OutcomesParts {
  readonly client: PublicClient;
  readonly network: Network;
  readonly relayer: Relayer;
  readonly log: { warn(facts: object, message: string): void };
  readonly meter: Pick<Meter, "outcomes"> | null;
}

/**
 * Creates the sender of outcomes, which sends those that wait at the same time in one transaction. It never sends a
 * second time for a purpose unless the first was mined without effect; the outcome is then sent alone. Rejects if
 * nothing could be sent.
 */
function createOutcomes(parts: OutcomesParts): (outcome: Outcome) => Promise<Carried> {
  const { relayer } = parts;
  const carried = createBatcher((group: readonly Outcome[]) => carry(parts, group), DEPARTURES);
  return discreet(async (outcome) => {
    if ((await relayer.failed(outcome.purpose)) !== null) return alone(relayer, outcome);
    const ended = await carried(outcome);
    if (ended instanceof Error) throw ended;
    return ended;
  });
}

/** Sends the calls that succeed in a simulation in one transaction, and the others one by one. */
async function carry(parts: OutcomesParts, group: readonly Outcome[]): Promise<readonly (Carried | Error)[]> {
  const { client, relayer } = parts;
  if (group.length === 1) return Promise.all(group.map((outcome) => orProblem(alone(relayer, outcome))));
  const calls = await Promise.all(group.map(({ carriable }) => carriable()));
  const succeeding = await succeedingIn(client, relayer.address, calls);
  const good = group.flatMap((outcome, place) => (succeeding[place] === true ? [{ outcome, call: calls[place] }] : []));
  const shared =
    good.length > 1 ? ship(parts, new Map(good.map(({ outcome, call }) => [outcome, call as Carriable]))) : null;
  return Promise.all(
    group.map(async (outcome, place) =>
      shared !== null && succeeding[place] === true
        ? ((await shared).get(outcome) ?? new Error("an outcome was not sent"))
        : orProblem(alone(relayer, outcome)),
    ),
  );
}

/** Sends one transaction for all of them except those that another process has sent by now. */
async function ship(
  parts: OutcomesParts,
  calls: ReadonlyMap<Outcome, Carriable>,
): Promise<ReadonlyMap<Outcome, Carried | Error>> {
  const { relayer } = parts;
  const members = [...calls.keys()];
  const callOf = new Map([...calls].map(([{ purpose }, call]) => [purpose, call]));
  const carriers = await relayer.ship({
    lane: "outcome",
    members,
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
    members.map((outcome): [Outcome, Carried | Error] => {
      const carrier = carriers.get(outcome.purpose) ?? new Error("an outcome was not sent");
      if (typeof carrier !== "string") return [outcome, carrier];
      return [outcome, endedIn(carrier, receipts.get(carrier) ?? null, shareOf(outcome.purpose, served.get(carrier)))];
    }),
  );
}

/**
 * Records the outcome of a shared transaction. Returns the purposes that it served, or null if it carried a single
 * outcome.
 */
function judge({ network, log, meter }: OutcomesParts, receipt: TransactionReceipt): readonly Hex[] | null {
  const served = servedBy(receipt);
  if (served === null) return null;
  meter?.outcomes(network, { served: served.length, gas: receipt.gasUsed });
  if (receipt.status === "reverted") log.warn({ transaction: receipt.transactionHash }, "a batch of outcomes reverted");
  return served;
}

/** Sends an outcome in a separate transaction, from the sender's own account. */
async function alone(relayer: Relayer, { purpose: first, own }: Outcome): Promise<Carried> {
  const purpose = await openPurpose(relayer, first);
  const transaction = await relayer.send({ ...own, gas: MOST_GAS, lane: "outcome", purpose });
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

export interface EscrowSenderParts extends OutcomesParts {
  /** The arbiter, which owns this relayer. */
  readonly arbiter: Pick<SigningAccount, "signTypedData">;
}

/**
 * Creates the sender that carries outcomes to the contract with the arbiter's own key. With null, no escrow contract is
 * configured.
 */
export function createEscrowSender(parts: EscrowSenderParts | null): EscrowSender {
  if (parts === null)
    return {
      async carry() {
        throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
      },
    };
  const send = createOutcomes(parts);
  return { carry: (task) => send(outcomeOf(parts, task)) };
}

function outcomeOf({ arbiter }: Pick<EscrowSenderParts, "arbiter">, task: Task): Outcome {
  const { contract: to, info, payment, decision } = task;
  const record = task.record ?? NO_RECORD;
  const data = (verdict: Hex) => endingData({ decision, info, record, verdict });
  return {
    purpose: outcomePurpose(payment, decision),
    own: { to, data: data(NO_VERDICT) },
    async carriable(): Promise<Carriable> {
      // Anyone may carry out the clock's decision, because the contract checks the clock.
      const verdict =
        task.record === null
          ? NO_VERDICT
          : await arbiter.signTypedData(verdictTypedData(task, record), verdictDigest(task, record));
      return { to, data: data(verdict), gas: OUTCOME_GAS };
    },
  };
}

/** Creates the reader of holds past their 30 minutes, according to the index. */
export const createOverdueHolds = (index: EscrowIndex, network: Network): OverdueHolds => ({
  async overdue(now, { limit, after }) {
    const found = await index.overdue(now, limit, after);
    return (
      found?.map(({ id, contract, terms, refundableFrom, held }) => ({
        network,
        contract,
        id,
        info: terms,
        transaction: held.transaction,
        block: held.block,
        refundableFrom,
      })) ?? null
    );
  },
});
