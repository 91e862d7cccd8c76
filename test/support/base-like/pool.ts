import { type Hex, keccak256, parseTransaction, recoverTransactionAddress, type TransactionSerialized } from "viem";
import { type Call, type Reply, refuse, replyTo } from "../chain/rpc.ts";
import { waitUntil } from "../wait-until.ts";
import { POOL_ERRORS, type Profile, type ProviderError } from "./profiles.ts";
import { numberOf, quantity } from "./view.ts";

/** The treatment of a submitted transaction. */
export type Treatment =
  /** It is mined as soon as the chain makes blocks and its fee suffices. */
  | "mined"
  /** It is acknowledged with its hash and never mined. */
  | "swallowed"
  /** It is not mined before these minutes of the chain's time have passed. */
  | { readonly afterMinutes: number }
  | { readonly refusedWith: ProviderError };

interface Pooled {
  readonly hash: Hex;
  readonly raw: Hex;
  readonly from: Hex;
  readonly nonce: number;
  readonly maxFee: bigint;
  readonly priorityFee: bigint;
  readonly to: Hex | null;
  readonly input: Hex;
  /** Unix seconds before which no block mines it. */
  readonly due: bigint;
}

export interface PoolParts {
  readonly profile: Profile;
  /** Calls the chain directly. */
  readonly ask: (method: string, ...params: readonly unknown[]) => Promise<Reply>;
  /** The base fee of the next block. */
  readonly baseFee: () => bigint;
  /** The time of the next block, in Unix seconds. */
  readonly blockTime: () => bigint;
  readonly isHalted: () => boolean;
  /** Called after a transaction was mined. */
  readonly mined: () => Promise<void>;
}

export interface Pool {
  /** Sets the treatment of the next submitted transactions. Later ones are mined again. */
  readonly treat: (treatment: Treatment, times?: number) => void;
  /** Drops the pooled transactions, as a restart of the nodes does. They can be submitted again. */
  readonly forget: () => void;
  /** The hashes of the pooled transactions. */
  readonly waiting: () => readonly Hex[];
  readonly send: (call: Call) => Promise<Reply>;
  /** Mines every transaction that is ready. */
  readonly drain: () => Promise<void>;
  /** The time at which the next delayed transaction is due, or null. */
  readonly nextDue: () => bigint | null;
  readonly pendingCount: (sender: string) => Promise<number>;
  /** A pooled transaction in the nodes' format, or null. */
  readonly shown: (hash: string) => object | null;
}

/**
 * The transaction pool in front of a chain that mines immediately. It keeps the transactions that must not be mined
 * yet.
 */
export function openPool(parts: PoolParts): Pool {
  const { ask, blockTime } = parts;
  let pooled: Pooled[] = [];
  let treatments: Treatment[] = [];
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work, work);
    queue = done.catch(() => undefined);
    return done;
  };
  const remove = ({ hash }: Pooled) => {
    pooled = pooled.filter((other) => other.hash !== hash);
  };
  const countOf = async (sender: string) =>
    Number(numberOf((await ask("eth_getTransactionCount", sender, "latest")).result) ?? 0n);

  const drainNow = async (): Promise<void> => {
    for (let next = await readyIn(pooled, parts, countOf); next !== undefined; ) {
      remove(next);
      await mine(parts, next);
      next = await readyIn(pooled, parts, countOf);
    }
  };

  const add = async (call: Call, raw: Hex, treatment: Treatment): Promise<Reply> => {
    if (typeof treatment === "object" && "refusedWith" in treatment) return refused(call, treatment.refusedWith);
    const one = await parse(
      raw,
      typeof treatment === "object" ? blockTime() + BigInt(treatment.afterMinutes * 60) : 0n,
    );
    if (treatment === "swallowed") return replyTo(call, one.hash);
    const refusal = objection(one, pooled, parts.profile) ?? ((await countOf(one.from)) > one.nonce ? TOO_LOW : null);
    if (refusal !== null) return refused(call, refusal);
    pooled = pooled.filter(({ from, nonce }) => from !== one.from || nonce !== one.nonce);
    if (one.due === 0n && (await isReady(one, parts, countOf))) {
      const reply = await mine(parts, one);
      await drainNow();
      return { ...reply, id: call.id };
    }
    pooled = [...pooled, one];
    return replyTo(call, one.hash);
  };

  return {
    treat: (treatment, times = 1) => {
      treatments = Array.from({ length: times }, () => treatment);
    },
    forget: () => {
      pooled = [];
    },
    waiting: () => pooled.map(({ hash }) => hash),
    send: (call) => inTurn(() => add(call, String(call.params?.[0]) as Hex, treatments.shift() ?? "mined")),
    drain: () => inTurn(drainNow),
    nextDue: () =>
      pooled.map(({ due }) => due).reduce<bigint | null>((least, due) => later(due, blockTime(), least), null),
    pendingCount: async (sender) => {
      let count = await countOf(sender);
      while (pooled.some(({ from, nonce }) => from === sender.toLowerCase() && nonce === count)) count += 1;
      return count;
    },
    shown: (hash) => {
      const one = pooled.find((other) => other.hash === hash);
      return one === undefined ? null : asShown(one);
    },
  };
}

/** `txpool.accountslots` of geth and reth. */
const MOST_OF_AN_ACCOUNT = 16;
const TOO_LOW = POOL_ERRORS.nonceTooLow;
const refused = (call: Call, { code, message }: ProviderError): Reply => refuse(call, code, message);

const later = (due: bigint, now: bigint, least: bigint | null): bigint | null =>
  due > now && (least === null || due < least) ? due : least;

async function parse(raw: Hex, due: bigint): Promise<Pooled> {
  const { nonce = 0, maxFeePerGas, maxPriorityFeePerGas, gasPrice, to, data } = parseTransaction(raw);
  const from = await recoverTransactionAddress({ serializedTransaction: raw as TransactionSerialized });
  return {
    hash: keccak256(raw),
    raw,
    from: from.toLowerCase() as Hex,
    nonce,
    maxFee: maxFeePerGas ?? gasPrice ?? 0n,
    priorityFee: maxPriorityFeePerGas ?? gasPrice ?? 0n,
    to: to ?? null,
    input: data ?? "0x",
    due,
  };
}

/** Returns the error if the pool refuses the transaction because of the ones it has, or null. */
function objection(one: Pooled, pooled: readonly Pooled[], profile: Profile): ProviderError | null {
  if (pooled.some(({ hash }) => hash === one.hash)) return POOL_ERRORS.known;
  const rival = pooled.find(({ from, nonce }) => from === one.from && nonce === one.nonce);
  if (rival === undefined) {
    const ofAccount = pooled.filter(({ from }) => from === one.from).length;
    return ofAccount >= MOST_OF_AN_ACCOUNT ? POOL_ERRORS.accountFull : null;
  }
  const enough = (offered: bigint, was: bigint) => offered * 100n >= was * (100n + profile.replacementPercent);
  return enough(one.maxFee, rival.maxFee) && enough(one.priorityFee, rival.priorityFee)
    ? null
    : POOL_ERRORS.underpriced;
}

type CountOf = (sender: string) => Promise<number>;

const isReady = async (one: Pooled, parts: PoolParts, countOf: CountOf): Promise<boolean> =>
  !parts.isHalted() &&
  one.due <= parts.blockTime() &&
  one.maxFee >= parts.baseFee() &&
  (await countOf(one.from)) === one.nonce;

async function readyIn(pooled: readonly Pooled[], parts: PoolParts, countOf: CountOf): Promise<Pooled | undefined> {
  for (const one of pooled) if (await isReady(one, parts, countOf)) return one;
  return undefined;
}

/** Sends a transaction to the chain, which mines it immediately or refuses it. */
async function mine({ ask, mined }: PoolParts, { raw, hash }: Pooled): Promise<Reply> {
  const reply = await ask("eth_sendRawTransaction", raw);
  if (reply.error !== undefined) return reply;
  const isMined = async () => ((await ask("eth_getTransactionReceipt", hash)).result ?? null) !== null;
  if (!(await waitUntil(isMined, 5_000, 2))) throw new Error(`The chain did not mine ${hash}.`);
  await mined();
  return reply;
}

const asShown = ({ hash, from, nonce, to, input, maxFee, priorityFee }: Pooled) => ({
  hash,
  from,
  to,
  input,
  nonce: quantity(BigInt(nonce)),
  maxFeePerGas: quantity(maxFee),
  maxPriorityFeePerGas: quantity(priorityFee),
  gasPrice: quantity(maxFee),
  gas: "0x0",
  value: "0x0",
  type: "0x2",
  blockHash: null,
  blockNumber: null,
  transactionIndex: null,
});
