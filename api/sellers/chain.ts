import { BaseError, HttpRequestError, parseAbi, RpcRequestError } from "viem";
import { barsIn, holdState, type Ledger, type Settled } from "../../packages/seller-check/src/exam/ledger.ts";
import { endFilter, endIn, transferAfter } from "../platform/chain/authorizations.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import type { MinedLog } from "../platform/chain/logs.ts";
import { asReading } from "../platform/chain/nodes.ts";
import { readAtBlock } from "../platform/chain/read-at-block.ts";
import { discreet, withoutSecrets } from "../platform/chain/rpc.ts";
import { usdcCalls } from "../platform/chain/usdc.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { FinalView, WatchedPayment } from "./payment-end.ts";
import { EXAM_ASSET, EXAM_NETWORK } from "./products.ts";

const ESCROW = parseAbi([
  "function paymentState(bytes32 id) view returns (bool hasCollectedPayment, uint120 capturableAmount, uint120 refundableAmount)",
]);

type Signed = Pick<WatchedPayment, "payer" | "nonce">;

/**
 * Creates a reader of which authorizations are used as of a final block, according to two nodes.
 * @throws Error if they disagree
 */
export const createFinalView = ({ client, finality }: Pick<ChainReader, "client" | "finality">) =>
  discreet(async (payments: readonly Signed[]): Promise<FinalView> => {
    const { number, time } = await finality.readTwice();
    const calls = payments.map(({ payer, nonce }) => usdcCalls(EXAM_ASSET).isUsed(payer, nonce));
    const read = async () => calls.map((await readAtBlock(client, { calls, blockNumber: number })).of);
    const [one, other] = [await read(), await asReading(1, read)];
    if (one.some((used, place) => used !== other[place]))
      throw new Error("two nodes disagree about which payments of exams are final");
    return { time, used: new Set(payments.flatMap(({ nonce }, place) => (one[place] ? [nonce] : []))) };
  });

/** Creates the ledger that exams read, from nodes that may lag or have gaps. It supports only USDC. */
export function createExamLedger(
  { client, logs }: Pick<ChainReader, "client" | "logs">,
  network: Network = EXAM_NETWORK,
): Ledger {
  const asset = NETWORKS[network].usdc.address;
  const usdc = usdcCalls(asset);
  return {
    network,
    mayLag: true,
    now: discreet(async () => Number((await client.getBlock()).timestamp)),
    block: discreet(async () => (await client.getBlock()).number),
    // In one call, so that all values come from one node at one block.
    read: discreet(async ({ from, payee = from, nonces }) => {
      const states = nonces.map((nonce) => ({ nonce, state: usdc.isUsed(from, nonce) }));
      const [balance, paused] = [usdc.balanceOf(from), usdc.isPaused()];
      const [payerBarred, payeeBarred] = [usdc.isBlacklisted(from), usdc.isBlacklisted(payee)];
      const calls = [balance, paused, payerBarred, payeeBarred, ...states.map(({ state }) => state)];
      const { time, of } = await readAtBlock(client, { calls });
      return {
        time: Number(time),
        balance: of(balance),
        used: new Set(states.flatMap(({ nonce, state }) => (of(state) ? [nonce] : []))),
        bars: barsIn({ paused: of(paused), payer: of(payerBarred), payee: of(payeeBarred) }),
      };
    }),
    hold: discreet(async ({ escrow: address, id }) =>
      holdState(await client.readContract({ address, abi: ESCROW, functionName: "paymentState", args: [id] })),
    ),
    transfer: discreet(async ({ from, nonce, since }): Promise<Settled | null> => {
      const key = { payer: from.toLowerCase() as Address, nonce };
      const wanted = { asset, key, since, head: (await client.getBlock()).number };
      const end = (await find(logs, wanted)) ?? (await asReading(1, () => find(logs, wanted)));
      if (end === null) return null;
      const receipt = await client.getTransactionReceipt({ hash: end.transactionHash });
      const transfer = transferAfter(receipt.logs, end);
      if (transfer === null) return null;
      return { transaction: end.transactionHash, block: end.blockNumber, ...transfer };
    }),
  };
}

/**
 * Creates a function that returns the newest block, or null if the node responds without one, as a rate-limited node
 * does.
 */
export const createHeadLook =
  ({ client }: Pick<ChainReader, "client">) =>
  async (): Promise<bigint | null> => {
    try {
      return (await client.getBlock()).number;
    } catch (error) {
      if (isAnswer(error)) return null;
      throw withoutSecrets(error);
    }
  };

const isAnswer = (error: unknown): boolean =>
  error instanceof BaseError &&
  error.walk((e) => e instanceof RpcRequestError || (e instanceof HttpRequestError && e.status !== undefined)) !== null;

interface Wanted {
  readonly asset: Address;
  readonly key: { readonly payer: Address; readonly nonce: Hex };
  readonly since: bigint;
  readonly head: bigint;
}

async function find(logs: ChainReader["logs"], { asset, key, since, head }: Wanted): Promise<MinedLog | null> {
  const range = { from: since < head ? since : head, to: head };
  for await (const page of logs.pages(endFilter(asset, key), range)) {
    const end = endIn(page.logs, key);
    if (end !== undefined) return end;
  }
  return null;
}
