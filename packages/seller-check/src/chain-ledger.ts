import {
  type Address,
  ContractFunctionExecutionError,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  createPublicClient,
  type Hex,
  http,
  isAddressEqual,
  type PublicClient,
  parseAbi,
  parseEventLogs,
} from "viem";
import {
  type Authorizations,
  type Bar,
  barsIn,
  ExaminersFault,
  holdState,
  type Ledger,
  type Reading,
  type Settled,
} from "./exam/ledger.ts";

const TOKEN = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function balanceOf(address account) view returns (uint256)",
  "function paused() view returns (bool)",
  "function isBlacklisted(address account) view returns (bool)",
]);
const [USED] = TOKEN;
const ESCROW = parseAbi([
  "function paymentState(bytes32 id) view returns (bool hasCollectedPayment, uint120 capturableAmount, uint120 refundableAmount)",
]);

/** Names of nodes that run their own chain, and the chain ids that such nodes use. */
const LOCAL_NODES = /anvil|hardhat|ganache/i;
const LOCAL_CHAINS = [1337, 31337];

/**
 * Reads a chain through its JSON-RPC URL.
 * @throws Error if the node does not respond
 */
export async function chainLedger(rpcUrl: string): Promise<Ledger> {
  const client = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 });
  const chainId = await client.getChainId();
  const version = await client.request({ method: "web3_clientVersion" }).catch(() => "");
  const isLocal = LOCAL_CHAINS.includes(chainId) || LOCAL_NODES.test(String(version));
  return {
    network: `eip155:${chainId}`,
    mayLag: !isLocal,
    now: async () => Number((await client.getBlock()).timestamp),
    block: async () => (await client.getBlock()).number,
    read: (given) => read(client, given),
    hold: async ({ escrow: address, id }) =>
      holdState(await client.readContract({ address, abi: ESCROW, functionName: "paymentState", args: [id] })),
    async transfer({ asset, from, nonce, since }) {
      const args = { authorizer: from, nonce };
      const [used] = await client.getLogs({ address: asset, event: USED, args, fromBlock: since });
      return used === undefined
        ? null
        : transferOf(client, used.transactionHash, { asset, from, after: used.logIndex });
    },
  };
}

/** Reads everything at one block; a node that has not reached it reports an error. */
async function read(client: PublicClient, { asset, from, payee, nonces }: Authorizations): Promise<Reading> {
  const { number: blockNumber, timestamp } = await client.getBlock();
  const code = await client.getCode({ address: asset, blockNumber });
  if (code === undefined)
    throw new ExaminersFault(`there is no contract at ${asset}, the token that the seller requests, on this chain`);
  const token = { address: asset, abi: TOKEN, blockNumber } as const;
  const [balance, ...used] = await Promise.all([
    client.readContract({ ...token, functionName: "balanceOf", args: [from] }),
    ...nonces.map((nonce) =>
      client.readContract({ ...token, functionName: "authorizationState", args: [from, nonce] }),
    ),
  ]);
  return {
    time: Number(timestamp),
    balance,
    used: new Set(nonces.filter((_, place) => used[place] === true)),
    bars: await barsOf(client, token, { payer: from, payee: payee ?? from }),
  };
}

interface Token {
  readonly address: Address;
  readonly abi: typeof TOKEN;
  readonly blockNumber: bigint;
}

/** @returns false for a function that the token does not have */
function absent(error: unknown): false {
  const cause = error instanceof ContractFunctionExecutionError ? error.cause : null;
  if (cause instanceof ContractFunctionZeroDataError || cause instanceof ContractFunctionRevertedError) return false;
  throw error;
}

/** Reads the token's bars. A token other than Circle's may have none of these functions. */
async function barsOf(
  client: PublicClient,
  token: Token,
  accounts: { readonly payer: Address; readonly payee: Address },
): Promise<ReadonlySet<Bar>> {
  const barred = (account: Address) =>
    client.readContract({ ...token, functionName: "isBlacklisted", args: [account] }).catch(absent);
  const [paused, payer, payee] = await Promise.all([
    client.readContract({ ...token, functionName: "paused" }).catch(absent),
    barred(accounts.payer),
    barred(accounts.payee),
  ]);
  return barsIn({ paused, payer, payee });
}

interface TransferPlace {
  readonly asset: Address;
  readonly from: Address;
  readonly after: number;
}

/** Returns the transfer that follows the use of an authorization, in the same transaction. */
async function transferOf(
  client: PublicClient,
  transaction: Hex,
  { asset, from, after }: TransferPlace,
): Promise<Settled | null> {
  const { logs, blockNumber: block } = await client.getTransactionReceipt({ hash: transaction });
  const transfers = parseEventLogs({ abi: TOKEN, eventName: "Transfer", logs });
  const found = transfers.find(
    ({ address, logIndex, args }) =>
      isAddressEqual(address, asset) && logIndex > after && isAddressEqual(args.from, from),
  );
  return found === undefined ? null : { transaction, block, to: found.args.to, value: found.args.value };
}
