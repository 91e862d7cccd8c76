import {
  type Address,
  createPublicClient,
  getAddress,
  type Hex,
  http,
  isAddressEqual,
  type PublicClient,
  parseAbi,
  parseEventLogs,
} from "viem";
import { type AskPaymentState, type Carried, type SignedPaymentState, settlementBy, utcTime } from "./payment-state.ts";
import { type Service, ServiceError } from "./service.ts";
import { USDC } from "./terms.ts";

const BASE_CHAIN_ID = 8453;
const TIMEOUT_MS = 10_000;

const ABI = parseAbi([
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
]);

/**
 * Reads a payment's state from a node of Base, at its newest final block. The service is then not trusted. It only
 * names the transaction of a cancellation, and the node must have its receipt.
 */
export function askNode(url: string, service: Service): AskPaymentState {
  const client = createPublicClient({ transport: http(url, { timeout: TIMEOUT_MS }) });
  return (carried) =>
    readPaymentState(client, service, carried).catch((error: Error & { readonly shortMessage?: string }) => ({
      type: "open",
      why: `the node of BASE_RPC_URL cannot report its status: ${error.shortMessage ?? error.message}`,
    }));
}

async function readPaymentState(client: PublicClient, service: Service, carried: Carried): Promise<SignedPaymentState> {
  const { from, nonce, validBefore } = carried;
  const [chainId, final] = await Promise.all([client.getChainId(), client.getBlock({ blockTag: "finalized" })]);
  if (chainId !== BASE_CHAIN_ID) throw new Error(`it is on chain ${chainId}, expected ${BASE_CHAIN_ID} (Base).`);
  // By its hash, so that a node that lacks the block does not read an older one.
  const isUsed = await client.readContract({
    address: USDC.address,
    abi: ABI,
    functionName: "authorizationState",
    args: [getAddress(from), nonce as Hex],
    blockHash: final.hash,
  });
  if (!isUsed)
    return final.timestamp >= validBefore
      ? { type: "over" }
      : { type: "open", why: `it is not used in the newest final block, of ${utcTime(final.timestamp)}.` };
  const canceledIn = await cancellation(client, service, carried);
  if (canceledIn !== null && canceledIn <= final.number) return { type: "over" };
  return { type: "charged", why: "a final block of the chain shows that its nonce is used." };
}

/** Returns the block of the cancellation that the service names; null if the node does not have it. */
async function cancellation(client: PublicClient, service: Service, carried: Carried): Promise<bigint | null> {
  const statement = await settlementBy(service, carried);
  if (statement instanceof ServiceError || statement.status !== "canceled" || statement.transaction === undefined)
    return null;
  const { blockNumber, logs } = await client.getTransactionReceipt({ hash: statement.transaction as Hex });
  const isThere = parseEventLogs({ abi: ABI, eventName: "AuthorizationCanceled", logs }).some(
    ({ address, args }) =>
      isAddressEqual(address, USDC.address) &&
      isAddressEqual(args.authorizer, carried.from as Address) &&
      args.nonce.toLowerCase() === carried.nonce.toLowerCase(),
  );
  return isThere ? blockNumber : null;
}
