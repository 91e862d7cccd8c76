import {
  type Address,
  decodeFunctionData,
  encodeFunctionData,
  type Hex,
  type LocalAccount,
  parseAbi,
  parseEventLogs,
} from "viem";
import { expect } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { AnvilClient } from "../../../scripts/embedded/anvil.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { TestChain } from "../chain/chain.ts";
import { PAY_TO } from "../service/environment.ts";
import { type Signed, signCancellation } from "./signing.ts";

const EVENTS = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);

interface Sender {
  readonly account?: LocalAccount;
  /** Needed where an estimate would fail. */
  readonly gas?: bigint;
}

/**
 * Sends a signed authorization to USDC, as any stranger who obtained it may, and waits until it is mined with any
 * result.
 */
export async function submit(chain: TestChain, { authorization, signature }: Signed, by: Sender = {}) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const hash = await chain.client.writeContract({
    account: devAccount(0),
    ...by,
    address: chain.network.usdc.address,
    abi: USDC_ABI,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
  return chain.client.waitForTransactionReceipt({ hash });
}

/** Does the same and expects success. Returns the transaction's hash. */
export async function broadcast(chain: TestChain, signed: Signed): Promise<Hex> {
  const { status, transactionHash } = await submit(chain, signed);
  expect(status).toBe("success");
  return transactionHash;
}

/** Cancels an authorization on chain, as only its payer can. */
export async function cancel(chain: TestChain, payer: LocalAccount, signed: Signed): Promise<void> {
  const call = { to: chain.network.usdc.address, data: await cancellationOf(chain, payer, signed) };
  const hash = await chain.client.sendTransaction({ account: devAccount(0), ...call });
  await chain.client.waitForTransactionReceipt({ hash });
}

/** The call to USDC that cancels an authorization, with its payer's signature. */
export async function cancellationOf(chain: TestChain, payer: LocalAccount, { authorization }: Signed): Promise<Hex> {
  const { nonce } = authorization;
  const signature = await signCancellation(payer, chain.network, { authorizer: payer.address, nonce });
  return encodeFunctionData({
    abi: USDC_ABI,
    functionName: "cancelAuthorization",
    args: [payer.address, nonce, signature],
  });
}

/** This account's payments to the service by authorization, read from the chain and never from our database. */
export async function settlements(chain: TestChain, payer: Address, payTo: Address = PAY_TO) {
  const logs = await chain.client.getLogs({
    address: chain.network.usdc.address,
    event: EVENTS[0],
    args: { authorizer: payer },
    fromBlock: 0n,
  });
  const found = await Promise.all(
    logs.map(async (used) => {
      const receipt = await chain.client.getTransactionReceipt({ hash: used.transactionHash });
      const transfer = parseEventLogs({ abi: EVENTS, eventName: "Transfer", logs: receipt.logs }).find(
        ({ logIndex, args }) => logIndex === used.logIndex + 1 && args.from === used.args.authorizer,
      );
      return { nonce: used.args.nonce, transaction: used.transactionHash, to: transfer?.args.to, ...transfer?.args };
    }),
  );
  return found.filter(({ to }) => to?.toLowerCase() === payTo.toLowerCase());
}

export const nothingCharged = async (chain: TestChain, payer: LocalAccount | Address): Promise<void> =>
  expect(await settlements(chain, typeof payer === "string" ? payer : payer.address)).toEqual([]);

export async function chargedOnce(chain: TestChain, { authorization }: Signed, payTo?: Address): Promise<void> {
  const found = await settlements(chain, authorization.from, payTo);
  expect(found).toMatchObject([{ nonce: authorization.nonce, value: authorization.value }]);
}

/** A settled payment, rebuilt from the transaction that settled it, as any reader of the chain can. */
export async function readFromChain(chain: TestChain, payer: Address, amount: bigint): Promise<Signed> {
  const [settlement] = (await settlements(chain, payer)).filter(({ value }) => value === amount);
  const { input } = await chain.client.getTransaction({ hash: settlement?.transaction as Hex });
  const [from, to, value, validAfter, validBefore, nonce, signature] = decodeFunctionData({
    abi: SUBMITTED,
    data: input,
  }).args;
  const authorization = { from, to, value, validAfter, validBefore, nonce };
  return { authorization, signature };
}

const SUBMITTED = parseAbi([
  "function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32 nonce, bytes signature)",
]);

const { usdc } = NETWORKS["eip155:8453"];

/** A payment by authorization in the current chain's logs. */
export interface ChainPayment {
  readonly from: Address;
  readonly to: Address;
  readonly nonce: Hex;
  readonly transaction: Hex;
  readonly block: number;
}

/** Every payment on the chain, counted without the service's own reader or index. */
export async function paymentsOnChain({
  chain,
}: {
  chain: Pick<AnvilClient, "getContractEvents">;
}): Promise<readonly ChainPayment[]> {
  const range = { address: usdc.address, fromBlock: 0n } as const;
  const [used, transfers] = await Promise.all([
    chain.getContractEvents({ ...range, abi: USDC_ABI, eventName: "AuthorizationUsed" }),
    chain.getContractEvents({ ...range, abi: USDC_ABI, eventName: "Transfer" }),
  ]);
  const place = (blockHash: Hex, logIndex: number) => `${blockHash} ${logIndex}`;
  const byPlace = new Map(transfers.map((log) => [place(log.blockHash, log.logIndex), log]));
  return used.flatMap(({ args, blockHash, blockNumber, logIndex, transactionHash }) => {
    const { from, to } = byPlace.get(place(blockHash, logIndex + 1))?.args ?? {};
    const { nonce } = args;
    if (from === undefined || to === undefined || nonce === undefined || from !== args.authorizer) return [];
    return [{ from, to, nonce, transaction: transactionHash, block: Number(blockNumber) }];
  });
}
