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
import { type Carried, utcTime } from "./carried-authorization.ts";
import { type AskPaymentState, type SignedPaymentState, settlementBy } from "./fate.ts";
import { type Service, ServiceError } from "./service.ts";
import { USDC } from "./terms.ts";

const BASE_CHAIN_ID = 8453;
const TIMEOUT_MS = 10_000;

const ABI = parseAbi([
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
]);

/**
 * What a node of Base says, at its newest final block. The service's word then counts for nothing: it only names the
 * transaction of a cancellation, and the node has to have its receipt.
 */
export function askNode(url: string, service: Service): AskPaymentState {
  const client = createPublicClient({ transport: http(url, { timeout: TIMEOUT_MS }) });
  return (carried) =>
    readFate(client, service, carried).catch((error: Error & { readonly shortMessage?: string }) => ({
      type: "open",
      why: `the node of BASE_RPC_URL cannot say what became of it: ${error.shortMessage ?? error.message}`,
    }));
}

async function readFate(client: PublicClient, service: Service, carried: Carried): Promise<SignedPaymentState> {
  const { from, nonce, validBefore } = carried;
  const [chainId, final] = await Promise.all([client.getChainId(), client.getBlock({ blockTag: "finalized" })]);
  if (chainId !== BASE_CHAIN_ID) throw new Error(`it is on chain ${chainId}, expected ${BASE_CHAIN_ID} (Base).`);
  // By its hash: a node that lacks the block must not answer from an older one.
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

/** The block of the cancellation that the service names; null if the node has no such thing. */
async function cancellation(client: PublicClient, service: Service, carried: Carried): Promise<bigint | null> {
  const said = await settlementBy(service, carried);
  if (said instanceof ServiceError || said.status !== "canceled" || said.transaction === undefined) return null;
  const { blockNumber, logs } = await client.getTransactionReceipt({ hash: said.transaction as Hex });
  const isThere = parseEventLogs({ abi: ABI, eventName: "AuthorizationCanceled", logs }).some(
    ({ address, args }) =>
      isAddressEqual(address, USDC.address) &&
      isAddressEqual(args.authorizer, carried.from as Address) &&
      args.nonce.toLowerCase() === carried.nonce.toLowerCase(),
  );
  return isThere ? blockNumber : null;
}
