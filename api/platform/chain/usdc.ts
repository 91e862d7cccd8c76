import {
  decodeFunctionResult,
  encodeFunctionData,
  type LogTopic,
  type PublicClient,
  padHex,
  parseEventLogs,
  toEventSelector,
} from "viem";
import { usdcAbi as abi, usdcEventsAbi } from "../../../contracts/abi.ts";
import type { NetworkFacts } from "../networks.ts";
import type { Address, Hex } from "../wallet.ts";
import type { NonceKey } from "./authorizations.ts";
import type { ChainReader } from "./chain.ts";
import type { BlockRange, LogReader } from "./logs.ts";
import { type Call, readAtBlock } from "./read-at-block.ts";
import { discreet } from "./rpc.ts";
import type { Funds, Head } from "./view.ts";

/** Returns the view functions of USDC at an address. */
export const usdcCalls = (target: Address) => ({
  /** The balance in atomic units. */
  balanceOf: (account: Address): Call<bigint> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "balanceOf", args: [account] }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "balanceOf", data }),
  }),
  /** Whether an authorization's nonce is used or canceled (EIP-3009). */
  isUsed: (payer: Address, nonce: Hex): Call<boolean> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "authorizationState", args: [payer, nonce] }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "authorizationState", data }),
  }),
  isBlacklisted: (account: Address): Call<boolean> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "isBlacklisted", args: [account] }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "isBlacklisted", data }),
  }),
  isPaused: (): Call<boolean> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "paused" }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "paused", data }),
  }),
});

/** Nodes limit the values in one position of a filter; geth takes 1,000. */
const ADDRESSES_A_CALL = 500;
const [, TRANSFER] = usdcEventsAbi;

type Reader = Pick<ChainReader, "client" | "logs" | "finality">;

export type UsdcReader = ReturnType<typeof createUsdcReader>;

/** Creates the reader of one chain's USDC for maintenance, with many look-ups in one call, at one block. */
export function createUsdcReader(chain: Reader, { usdc }: NetworkFacts) {
  const { client, finality } = chain;
  return {
    /** A statement published after this time is irrevocable, so the final block is read twice. */
    finalHead: discreet(async (): Promise<Head> => {
      const { number, time } = await finality.readTwice();
      return { number: Number(number), time };
    }),
    /** Returns the transfers from and to these addresses, both blocks included, oldest first. */
    transfersOf: discreet((addresses: readonly Address[], blocks: { readonly from: number; readonly to: number }) =>
      transfersOf(chain, usdc.address, { addresses, ...blocks }),
    ),
    /** Returns for each nonce, in order, whether it was used or canceled. */
    areUsed: discreet(async (authorizations: readonly NonceKey[]): Promise<readonly boolean[]> => {
      if (authorizations.length === 0) return [];
      const calls = authorizations.map(({ payer, nonce }) => usdcCalls(usdc.address).isUsed(payer, nonce));
      return calls.map((await readAtBlock(client, { calls })).of);
    }),
  };
}

interface TransferQuery {
  readonly addresses: readonly Address[];
  readonly from: number;
  readonly to: number;
}

async function transfersOf(
  { logs }: Reader,
  address: Address,
  { addresses, from, to }: TransferQuery,
): Promise<Transfer[]> {
  const found: Transfer[] = [];
  for (let place = 0; place < addresses.length; place += ADDRESSES_A_CALL) {
    const some = addresses.slice(place, place + ADDRESSES_A_CALL).map((one) => padHex(one, { size: 32 }));
    for (const parties of [[null, some], [some]]) {
      const pages = transferPages(logs, { usdc: address, parties }, { from: BigInt(from), to: BigInt(to) });
      for await (const page of pages) found.push(...page.transfers);
    }
  }
  return found.sort((one, other) => one.block - other.block || one.logIndex - other.logIndex);
}

interface Parties {
  readonly usdc: Address;
  /** The senders and the recipients, as topics; null for anyone. */
  readonly parties: readonly LogTopic[];
}

/** Yields the transfers between these parties, both blocks included, page by page. */
export async function* transferPages(logs: LogReader, { usdc, parties }: Parties, range: BlockRange) {
  const filter = { address: usdc, topics: [toEventSelector(TRANSFER), ...parties] };
  for await (const page of logs.pages(filter, range))
    yield { read: page.read, transfers: parseEventLogs({ abi: [TRANSFER], logs: [...page.logs] }).map(parse) };
}

const parse = (log: ParsedTransfer): Transfer => ({
  transaction: log.transactionHash,
  block: Number(log.blockNumber),
  logIndex: log.logIndex,
  from: log.args.from.toLowerCase() as Address,
  to: log.args.to.toLowerCase() as Address,
  value: log.args.value,
});

type ParsedTransfer = ReturnType<typeof parseEventLogs<[typeof TRANSFER]>>[number];

interface Asked {
  readonly usdc: Address;
  readonly payer: Address;
  readonly nonces: readonly Hex[];
}

/** Reads a payer's balance, and which of its nonces are unused, in one call and thus at one block. */
export async function payerFunds(client: PublicClient, { usdc, payer, nonces }: Asked): Promise<Funds> {
  const { balanceOf, isUsed } = usdcCalls(usdc);
  const balance = balanceOf(payer);
  const states = nonces.map((nonce) => ({ nonce, state: isUsed(payer, nonce) }));
  const { of } = await readAtBlock(client, { calls: [balance, ...states.map(({ state }) => state)] });
  return { balance: of(balance), unused: states.flatMap(({ nonce, state }) => (of(state) ? [] : [nonce])) };
}

/** A transfer of USDC, in atomic units. */
export interface Transfer {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly block: number;
  readonly transaction: Hex;
  readonly logIndex: number;
}
