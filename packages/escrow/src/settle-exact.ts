import { type Address, type Client, type Hex, isAddressEqual, type LocalAccount, parseAbi, parseEventLogs } from "viem";
import {
  getBlockNumber,
  getContractEvents,
  getTransactionReceipt,
  readContract,
  simulateContract,
  waitForTransactionReceipt,
  writeContract,
} from "viem/actions";
import type { ExactPayment } from "./exact-terms.ts";
import { inTurn } from "./hold.ts";
import { revertReason } from "./revert-reason.ts";

const usdcAbi = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);

/** More than the lifetime of an authorization; nodes limit the range of one search. */
const SEARCHED_BLOCKS = 1_000n;
const MINED_WITHIN_MS = 60_000;
/** A transfer uses up to 100,000; a contract wallet that checks its signature uses more. */
const TRANSFER_GAS = 250_000n;

export interface ExactChain {
  readonly client: Client;
  readonly account: LocalAccount;
  readonly chainId: number;
  readonly usdc: Address;
}

/**
 * Returns the transaction that paid this merchant by an authorization; `elsewhere` if it is used but no transaction
 * shows that.
 */
export async function paidBy(
  chain: ExactChain,
  { authorization }: ExactPayment,
): Promise<Hex | "unused" | "elsewhere"> {
  const { client, usdc: address } = chain;
  const { from, nonce } = authorization;
  const used = await readContract(client, {
    ...{ address, abi: usdcAbi, functionName: "authorizationState", args: [from, nonce] },
  });
  if (!used) return "unused";
  const head = await getBlockNumber(client);
  const [event] = await getContractEvents(client, {
    ...{ address, abi: usdcAbi, eventName: "AuthorizationUsed", args: { authorizer: from, nonce } },
    fromBlock: head > SEARCHED_BLOCKS ? head - SEARCHED_BLOCKS : 0n,
  });
  if (event === undefined) return "elsewhere";
  return (await shows(chain, event.transactionHash, authorization)) ? event.transactionHash : "elsewhere";
}

/**
 * Whether a transaction made the payment. The transfer must follow its authorization, because another transfer may have
 * the same amount.
 */
async function shows(
  { client, usdc }: ExactChain,
  hash: Hex,
  { from, to, value, nonce }: ExactPayment["authorization"],
) {
  const { logs } = await getTransactionReceipt(client, { hash });
  const events = parseEventLogs({ abi: usdcAbi, logs: logs.filter(({ address }) => isAddressEqual(address, usdc)) });
  const at = events.findIndex(({ eventName, args }) => eventName === "AuthorizationUsed" && args.nonce === nonce);
  const next = events[at + 1];
  return (
    at >= 0 &&
    next?.eventName === "Transfer" &&
    isAddressEqual(next.args.from, from) &&
    isAddressEqual(next.args.to, to) &&
    next.args.value === value
  );
}

const transferCall = ({ usdc: address }: ExactChain, { authorization, signature }: ExactPayment) => {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
  return { address, abi: usdcAbi, functionName: "transferWithAuthorization", args, gas: TRANSFER_GAS } as const;
};

/** Returns the reason why USDC would refuse a payment; null if it would not. @throws if the node fails */
export async function refusedBy(chain: ExactChain, payment: ExactPayment): Promise<string | null> {
  try {
    await simulateContract(chain.client, { ...transferCall(chain, payment), account: chain.account.address });
    return null;
  } catch (error) {
    const reason = revertReason(error);
    if (reason === null) throw error;
    return reason.text;
  }
}

/**
 * Sends a payment from the merchant's account, and returns its transaction; null if it reverted.
 * @throws if it is unknown whether it was mined
 */
export async function settle(chain: ExactChain, payment: ExactPayment): Promise<Hex | null> {
  const { client, account, chainId } = chain;
  const send = () => writeContract(client, { ...transferCall(chain, payment), account, chain: null });
  const hash = await inTurn(`${chainId} ${account.address}`, send);
  const { status } = await waitForTransactionReceipt(client, { hash, timeout: MINED_WITHIN_MS, pollingInterval: 250 });
  return status === "success" ? hash : null;
}
