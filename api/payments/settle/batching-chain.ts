import type { PublicClient, TransactionReceipt } from "viem";
import { createBatcher, createShortMemory } from "../../platform/chain/batcher.ts";
import { discreet } from "../../platform/chain/rpc.ts";
import type { Head } from "../../platform/chain/view.ts";
import type { Meter, SentBatch } from "../../platform/metrics/meter.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import type { Call } from "../../platform/relayer/form.ts";
import {
  isNoPlace,
  type Lane,
  type NextBlock,
  PLACE_WITHIN_MS,
  TRY_AGAIN_MS,
  TurnedAway,
} from "../../platform/relayer/places.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { assertSucceeded, MINED_WITHIN_MS, type Payment } from "./facilitator-chain.ts";
import { failedPlaces, isDeployed, type SignedTransfer, settlingIn } from "./settlement-batch.ts";

const LOOK_AGAIN_MS = 600_000;

interface Watch {
  readonly log: { warn(facts: object, message: string): void };
  /** Receives each result. */
  readonly report: (isGood: boolean) => void;
}

/**
 * Tracks whether batches may be sent. Without the contract, and after a batch that reverted, payments are sent alone
 * for ten minutes.
 */
function watchContract(client: PublicClient, { log, report }: Watch) {
  let known: { readonly until: number; readonly good: Promise<boolean> } | null = null;
  const look = async () => {
    const isGood = await isDeployed(client);
    report(isGood);
    if (!isGood) log.warn({}, "the settlement contract is not deployed: payments settle one by one");
    else known = { until: Number.POSITIVE_INFINITY, good: Promise.resolve(true) };
    return isGood;
  };
  return {
    isGood: (): Promise<boolean> => {
      if (known === null || performance.now() >= known.until) {
        known = { until: performance.now() + LOOK_AGAIN_MS, good: look() };
        // If the node cannot be read, the next call reads it again.
        known.good.catch(() => {
          known = null;
        });
      }
      return known.good;
    },
    /** Records that a batch was mined and reverted, which no payment in it can cause. */
    distrust: (): void => {
      log.warn({}, "a batch reverted: payments settle one by one for ten minutes");
      report(false);
      known = { until: performance.now() + LOOK_AGAIN_MS, good: Promise.resolve(false) };
    },
  };
}

/** When to send payments in one transaction. */
export interface BatchPolicy {
  /** The maximum number of payments in a transaction. With 1, every payment is sent alone. */
  readonly most: number;
  /** How many milliseconds the first waits while another batch is not mined yet. */
  readonly waitMs: number;
}

interface Waiting<Item> {
  readonly item: Item;
  /** In milliseconds of the process. */
  readonly since: number;
  readonly done: (problem: Error | null) => void;
}

/**
 * Collects items into batches. A batch is sent immediately, with all items from the same turn of the event loop, if no
 * other is in progress. Otherwise it is sent when that one ends, when it has `most` items, or when its first item has
 * waited `waitMs`. Items that get no place in the account's queue are sent with newer ones after the next block, for
 * `PLACE_WITHIN_MS` at most.
 * @param work returns an error or null for each item, in order
 */
export function createBatchQueue<Item>(
  work: (items: readonly Item[]) => Promise<readonly (Error | null)[]>,
  { most, waitMs, nextBlock }: BatchPolicy & { readonly nextBlock: NextBlock },
): (item: Item) => Promise<Error | null> {
  const queue: Waiting<Item>[] = [];
  let underWay = 0;
  let isTurn = false;
  let isHeld = false;
  let timer: NodeJS.Timeout | undefined;

  const waitedMs = () => performance.now() - (queue[0]?.since ?? 0);
  const mayGo = () => queue.length > 0 && (underWay === 0 || queue.length >= most || waitedMs() >= waitMs);
  const depart = () => {
    isTurn = false;
    clearTimeout(timer);
    if (isHeld) return;
    while (mayGo()) void go(queue.splice(0, most));
    if (queue.length > 0) timer = setTimeout(depart, Math.max(1, waitMs - waitedMs()));
  };
  const go = async (group: readonly Waiting<Item>[]) => {
    underWay++;
    const problems = await work(group.map(({ item }) => item)).catch((error: unknown) =>
      group.map(() => (error instanceof Error ? error : new Error(String(error)))),
    );
    underWay--;
    const back = group.filter(({ since, done }, at) => {
      const problem = problems[at] ?? null;
      if (isNoPlace(problem) && performance.now() - since < PLACE_WITHIN_MS) return true;
      done(problem);
      return false;
    });
    queue.unshift(...back);
    if (back.length > 0) hold();
    depart();
  };
  const hold = () => {
    if (isHeld) return;
    isHeld = true;
    void nextBlock(TRY_AGAIN_MS).then(() => {
      isHeld = false;
      depart();
    });
  };
  return (item) =>
    new Promise((done) => {
      queue.push({ item, since: performance.now(), done });
      if (!isTurn) setImmediate(depart);
      isTurn = true;
    });
}

export interface BatchingParts<Signed = SignedTransfer> {
  readonly client: PublicClient;
  readonly network: Pick<NetworkFacts, "id">;
  readonly relayer: Relayer;
  readonly sharing: BatchFormat<Signed>;
  readonly policy: BatchPolicy;
  readonly log: { warn(facts: object, message: string): void };
  readonly meter: Pick<Meter, "batch" | "batching" | "turnedAway"> | null;
}

/** Settles one network's payments together where that is safe. */
export interface Batching<Signed = SignedTransfer> {
  /**
   * Simulates a payment with those that arrive at the same time, and returns the head if it would settle. Null decides
   * nothing, so a simulation of this payment alone is needed. Only a payment that passes here may share a transaction.
   */
  simulate(transfer: Signed): Promise<Head | null>;
  /**
   * Sends a payment that passed, and resolves once its transaction is mined, or to false if it must be sent alone and
   * nothing was sent. Rejects with `TurnedAway` if it was not sent and never will be.
   */
  submit(payment: Payment<Signed>): Promise<boolean>;
  /** Returns the lane of a payment that is sent alone. While batches are off, ordinary accounts have their own. */
  laneOf(transfer: Signed): Promise<Lane>;
}

const SIMULATED = { most: 50, underWay: 2, waitMs: 5 };
/** Between its simulation and its submission a payment is only written to the journal. */
const PASSED_FOR_MS = 60_000;
/** A payer whose payment failed in a batch pays alone for this long. */
const ALONE_FOR_MS = 3_600_000;

export function createBatching<Signed>(parts: BatchingParts<Signed>): Batching<Signed> {
  const { client, network, relayer, sharing, policy, log, meter } = parts;
  const nameOf = (signed: Signed) => Object.values(sharing.payerOf(signed)).join("");
  const payerOf = (signed: Signed) => sharing.payerOf(signed).payer;
  const contract = watchContract(client, { log, report: (isGood) => meter?.batching(network.id, isGood) });
  const passed = createShortMemory(PASSED_FOR_MS);
  const alone = createShortMemory(ALONE_FOR_MS);

  const simulated = createBatcher(async (transfers: readonly Signed[]) => {
    const call = sharing.several(transfers);
    const sending = await relayer.terms(call.gas);
    const [settling, { number, timestamp: time }] = await Promise.all([
      settlingIn(client, { ...call, ...sending }, transfers.length),
      client.getBlock(),
    ]);
    return settling.map((isSettling) => (isSettling ? { number: Number(number), time } : null));
  }, SIMULATED);

  const judge = (receipt: TransactionReceipt, payments: readonly Queued<Signed>[]) => {
    const failed = receipt.status === "reverted" ? payments.map((_, place) => place + 1) : failedPlaces(receipt);
    if (failed.length === 0) return;
    log.warn({ transaction: receipt.transactionHash, failed }, "payments failed within a batch");
    for (const { transfer } of failed.flatMap((place) => payments[place - 1] ?? [])) alone.remember(payerOf(transfer));
    if (receipt.status === "reverted") contract.distrust();
  };
  const isOrdinary = (address: Address) =>
    client.getCode({ address }).then(
      (code) => code === undefined,
      () => false,
    );
  const sent = (batch: SentBatch) => meter?.batch(network.id, batch);
  const settled = createBatchQueue<Queued<Signed>>((payments) => settle(relayer, { payments, sharing, judge, sent }), {
    ...policy,
    nextBlock: relayer.nextBlock,
  });
  return {
    simulate: discreet(async (transfer) => {
      if (policy.most === 1 || !sharing.fits(transfer) || alone.has(payerOf(transfer))) return null;
      if (!(await contract.isGood())) return null;
      const head = await simulated(transfer);
      if (head !== null) passed.remember(nameOf(transfer));
      return head;
    }),
    submit: async (payment) => {
      const { transfer } = payment;
      if (!passed.has(nameOf(transfer)) || alone.has(payerOf(transfer))) return false;
      // A payer that got code since may present other bytes as its signature.
      if (!sharing.fits(transfer)) return false;
      const problem = await settled({ ...payment, since: performance.now() });
      if (problem instanceof TurnedAway) meter?.turnedAway(network.id, problem.because);
      if (problem !== null) throw problem;
      return true;
    },
    laneOf: async (transfer) => {
      const isOff = policy.most === 1 || !(await contract.isGood().catch(() => true));
      return isOff && sharing.fits(transfer) && (await isOrdinary(payerOf(transfer))) ? "batch" : "alone";
    },
  };
}

/** A waiting payment, with the time it arrived, in milliseconds of the process. */
interface Queued<Signed> extends Payment<Signed> {
  readonly since: number;
}

interface Group<Signed> {
  readonly payments: readonly Queued<Signed>[];
  readonly sharing: BatchFormat<Signed>;
  readonly judge: (receipt: TransactionReceipt, shipped: readonly Queued<Signed>[]) => void;
  readonly sent: (batch: SentBatch) => void;
}

/**
 * Sends all the payments in one transaction, except those that another process has sent meanwhile. Returns an error or
 * null for each payment.
 */
async function settle<Signed>(
  relayer: Relayer,
  { payments, sharing, judge, sent }: Group<Signed>,
): Promise<readonly (Error | null)[]> {
  const waitedSeconds = (performance.now() - (payments[0]?.since ?? 0)) / 1000;
  let ours: readonly Queued<Signed>[] = [];
  const carriers = await relayer.ship({
    lane: "batch",
    members: payments,
    callFor: (purposes) => {
      ours = purposes.flatMap((purpose) => payments.find((payment) => payment.purpose === purpose) ?? []);
      return callFor(sharing, ours);
    },
  });
  const waiting = new Set(payments.map(({ purpose }) => purpose)).size;
  if (waiting > 1 && ours.length > 0) sent({ payments: ours.length, skipped: waiting - ours.length, waitedSeconds });
  const mined = async (carrier: Hex) => {
    const receipt = await relayer.waitFor(carrier, MINED_WITHIN_MS);
    if (carriers.get(ours[0]?.purpose ?? "0x") !== carrier) return;
    if (ours.length > 1) judge(receipt, ours);
    else assertSucceeded(receipt);
  };
  const hashes = new Set([...carriers.values()].filter((carrier) => typeof carrier === "string"));
  const outcomes = new Map([...hashes].map((hash) => [hash, problemOf(mined(hash))]));
  return Promise.all(
    payments.map(async ({ purpose }) => {
      const carrier = carriers.get(purpose);
      return typeof carrier === "string" ? ((await outcomes.get(carrier)) ?? null) : (carrier ?? null);
    }),
  );
}

function callFor<Signed>(sharing: BatchFormat<Signed>, payments: readonly Queued<Signed>[]): Call {
  const transfers = payments.map(({ transfer }) => transfer);
  const [one] = transfers;
  return one === undefined || transfers.length > 1 ? sharing.several(transfers) : sharing.single(one);
}

const problemOf = (work: Promise<unknown>): Promise<Error | null> =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );

/** How several signed payments of one kind share a transaction of the settlement batch. */
export interface BatchFormat<Signed> {
  readonly payerOf: (signed: Signed) => { readonly payer: Address; readonly nonce: Hex };
  /** Whether it may share a transaction; only an ordinary account's signature may. */
  readonly fits: (signed: Signed) => boolean;
  readonly several: (signed: readonly Signed[]) => Call;
  /**
   * Calls the token or the contract directly, which costs less, with a gas limit that is enough for every ordinary
   * account.
   */
  readonly single: (signed: Signed) => Call;
}
