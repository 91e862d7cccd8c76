import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  formatLog,
  http,
  type Log,
  numberToHex,
  type PublicClient,
  padHex,
  parseAbi,
  toEventSelector,
} from "viem";
import { usdcAbi, usdcEventsAbi } from "../../../contracts/abi.ts";
import { NETWORKS, type Network, type NetworkFacts } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Chain, Standing } from "../../payments/chain.ts";
import type { TransferSimulator } from "../../payments/exact/scheme.ts";
import type { Authorization, Expected, Head } from "../../payments/scheme.ts";
import type { Settlement, View } from "../../payments/step-types.ts";

const ERC1271 = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
const ERC1271_MAGIC = "0x1626ba7e";
/** Providers refuse wider `eth_getLogs` ranges. */
const LOG_RANGE = 9_000n;
/** How far before a payment's arrival its authorization may have been used already: a day of Base blocks. */
const BEFORE_ARRIVAL = 43_200n;
/** A node may run a little behind the head that was noted on arrival. */
const OVERLAP = 64n;
const HEAD_CACHE_MS = 500;

export interface ChainReader extends Chain, TransferSimulator {
  readonly client: PublicClient;
  finalizedBlock(): Promise<number>;
}

/** Reads one chain over JSON-RPC, concurrent calls batched. The transfer is looked for by (payer, nonce), never by a hash that somebody reports. */
export function createChain(network: Network, rpcUrl: string): ChainReader {
  const facts = NETWORKS[network];
  const client = createPublicClient({
    transport: http(rpcUrl, { batch: { wait: 0 }, timeout: 10_000, retryCount: 1 }),
    cacheTime: 0,
  });
  const head = cachedHead(client);
  return {
    client,
    head: discreet(head),
    finalizedBlock: discreet(async () => Number((await client.getBlock({ blockTag: "finalized" })).number)),
    verifyContractSignature: discreet((payer, digest, signature) =>
      verifyContractSignature(client, payer, digest, signature),
    ),
    simulate: discreet(async (authorization, signature) => {
      const [refused, head] = await Promise.all([
        refusal(client, facts, authorization, signature),
        client.getBlock().then(asHead),
      ]);
      return { refused, head };
    }),
    standing: discreet((settlement) => standing(client, settlement)),
    look: discreet(async (expected) => look(client, facts, expected, await head())),
  };
}

const MAX_REASON_LENGTH = 300;

/** viem's errors print calldata, which holds payers' signatures, and the node's URL, which may hold a key: neither belongs in a log. */
export const withoutSecrets = (error: unknown): unknown =>
  error instanceof BaseError
    ? new Error(
        `${error.name}: ${error.shortMessage} ${error.details}`
          .replace(/[0-9a-f]{64,}/gi, "…")
          .slice(0, MAX_REASON_LENGTH),
      )
    : error;

/** The same work, rejecting with errors that may be logged. */
export const discreet =
  <Arguments extends readonly unknown[], T>(work: (...given: Arguments) => Promise<T>) =>
  (...given: Arguments): Promise<T> =>
    work(...given).catch((error: unknown) => {
      throw withoutSecrets(error);
    });

const asHead = ({ number, timestamp }: { number: bigint; timestamp: bigint }): Head => ({
  number: Number(number),
  time: timestamp,
});

function cachedHead(client: PublicClient): () => Promise<Head> {
  let cached: { at: number; head: Promise<Head> } | null = null;
  return () => {
    if (cached !== null && Date.now() - cached.at < HEAD_CACHE_MS) return cached.head;
    const head = client.getBlock().then(asHead);
    const entry = { at: Date.now(), head };
    cached = entry;
    // A failed read is not kept: the next caller asks again.
    head.catch(() => {
      if (cached === entry) cached = null;
    });
    return head;
  };
}

async function verifyContractSignature(
  client: PublicClient,
  payer: Address,
  digest: Hex,
  signature: Hex,
): Promise<boolean> {
  const code = await client.getCode({ address: payer });
  if (code === undefined || code === "0x") return false;
  try {
    const answer = await client.readContract({
      address: payer,
      abi: ERC1271,
      functionName: "isValidSignature",
      args: [digest, signature],
    });
    return answer === ERC1271_MAGIC;
  } catch (error) {
    if (isTransport(error)) throw error;
    return false;
  }
}

const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/exceeds balance/i, "The payer's USDC balance is too low for this payment."],
  [/blacklist/i, "Circle has blacklisted an account of this payment; USDC refuses the transfer."],
  [/paused/i, "USDC transfers are paused at the moment; nothing was charged."],
  [/used or canceled/i, "The nonce of this authorization was used or cancelled before."],
  [/invalid signature/i, "The USDC contract does not accept the signature."],
  [/not yet valid/i, "The authorization is not valid yet."],
  [/expired/i, "The authorization has expired."],
];

async function refusal(
  client: PublicClient,
  facts: NetworkFacts,
  authorization: Authorization,
  signature: Hex,
): Promise<string | null> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  try {
    await client.simulateContract({
      address: facts.usdc.address,
      abi: usdcAbi,
      functionName: "transferWithAuthorization",
      args: [from, to, value, validAfter, validBefore, nonce, signature],
    });
    return null;
  } catch (error) {
    if (isTransport(error)) throw error;
    const reason = revertReason(error);
    return (
      REFUSALS.find(([pattern]) => pattern.test(reason))?.[1] ?? `The USDC contract refuses the transfer: ${reason}.`
    );
  }
}

const revertReason = (error: unknown): string => {
  const reverted = error instanceof BaseError ? error.walk((e) => e instanceof ContractFunctionRevertedError) : null;
  return reverted instanceof ContractFunctionRevertedError
    ? (reverted.reason ?? "it reverted without a reason")
    : "it reverted";
};

const UNREADABLE_ANSWERS = new Set(["ContractFunctionZeroDataError", "AbiDecodingDataSizeTooSmallError"]);

/** True when the node did not answer, rather than the contract. */
const isTransport = (error: unknown): boolean =>
  !(
    error instanceof BaseError &&
    error.walk(
      (e) => e instanceof ContractFunctionRevertedError || (e instanceof BaseError && UNREADABLE_ANSWERS.has(e.name)),
    ) !== null
  );

async function look(client: PublicClient, facts: NetworkFacts, expected: Expected, head: Head): Promise<View> {
  const find = (range: BlockRange) => findUse(client, facts, expected, range);
  const arrival = since(expected.fromBlock, head);
  const [recent, finalBlock] = await Promise.all([
    findFirst(rangesUpTo(BigInt(head.number), arrival), find),
    client.getBlock({ blockTag: "finalized" }),
  ]);
  if (recent !== null) return shown(recent, finalBlock.number);
  const used = (blockNumber?: bigint) =>
    client.readContract({
      address: facts.usdc.address,
      abi: usdcAbi,
      functionName: "authorizationState",
      args: [expected.payer, expected.nonce],
      ...(blockNumber === undefined ? {} : { blockNumber }),
    });
  if (!(await used())) {
    const over = finalBlock.timestamp >= expected.validBefore && !(await used(finalBlock.number));
    return over ? { nonce: "dead", reason: "expired" } : { nonce: "unused" };
  }
  const earlier = await findFirst(rangesBefore(arrival), find);
  if (earlier !== null) return shown(earlier, finalBlock.number);
  // No log explains it: the node's logs may lag behind its state, and what is missing proves nothing.
  if (await used(finalBlock.number)) return { nonce: "spent" };
  throw new Error("the node shows a nonce as used and not yet by what");
}

/** A final block never changes: once the hash at its height is the settlement's, that holds for good. */
async function standing(client: PublicClient, { block, blockHash }: Settlement): Promise<Standing> {
  const final = await client.getBlock({ blockTag: "finalized" });
  const found = await client.getBlock({ blockNumber: BigInt(block) }).catch(() => null);
  if (found?.hash !== blockHash) return "unknown";
  return final.number >= BigInt(block) ? "final" : "pending";
}

/** A chain that went back, or a node that lags, has no block of the payment's arrival yet: nodes refuse such a range. */
const since = (fromBlock: number, head: Head): bigint => {
  const start = BigInt(Math.min(fromBlock, head.number)) - OVERLAP;
  return start > 0n ? start : 0n;
};

type Use = { readonly paid: Settlement } | { readonly paid: null; readonly block: bigint };

function shown(use: Use, finalBlock: bigint): View {
  if (use.paid !== null) return { nonce: "paid", settlement: use.paid, final: BigInt(use.paid.block) <= finalBlock };
  return use.block <= finalBlock ? { nonce: "dead", reason: "burnt" } : { nonce: "spent" };
}

interface BlockRange {
  readonly from: bigint;
  readonly to: bigint | "latest";
}

/** Ranges that providers take, oldest first; the last one is open, because the head that it was counted from may be half a second old. */
function rangesUpTo(head: bigint, from: bigint): BlockRange[] {
  const ranges: BlockRange[] = [];
  let start = from;
  for (; start + LOG_RANGE <= head; start += LOG_RANGE) ranges.push({ from: start, to: start + LOG_RANGE - 1n });
  return [...ranges, { from: start, to: "latest" }];
}

async function findFirst(
  ranges: readonly BlockRange[],
  find: (range: BlockRange) => Promise<Use | null>,
): Promise<Use | null> {
  for (const range of ranges) {
    const use = await find(range);
    if (use !== null) return use;
  }
  return null;
}

/** The nonce may have been used before the payment arrived: a day back, newest range first. */
function rangesBefore(newest: bigint): BlockRange[] {
  const oldest = newest > BEFORE_ARRIVAL ? newest - BEFORE_ARRIVAL : 0n;
  const ranges: BlockRange[] = [];
  for (let to = newest; to > oldest; to -= LOG_RANGE) {
    const from = to - LOG_RANGE + 1n;
    ranges.push({ from: from > oldest ? from : oldest, to });
  }
  return ranges;
}

/** What a range shows of (payer, nonce): its use, and whether the very next log is the Transfer that pays us, or its cancellation. */
async function findUse(
  client: PublicClient,
  facts: NetworkFacts,
  expected: Expected,
  range: BlockRange,
): Promise<Use | null> {
  const { payer, payTo, value } = expected;
  const address = facts.usdc.address;
  const [ended, transfers] = await Promise.all([
    endOf(client, address, expected, range),
    client.getLogs({
      address,
      event: TRANSFER,
      args: { from: payer, to: payTo },
      fromBlock: range.from,
      toBlock: range.to,
    }),
  ]);
  if (ended === undefined) return null;
  const { blockHash, blockNumber, logIndex, transactionHash } = ended;
  const paid = transfers.some(
    (log) => log.blockHash === blockHash && log.logIndex === logIndex + 1 && log.args.value === value,
  );
  if (!paid) return { paid: null, block: blockNumber };
  return { paid: { transaction: transactionHash, block: Number(blockNumber), blockHash, logIndex } };
}

/** The log AuthorizationUsed or AuthorizationCanceled of (payer, nonce): a nonce ends once. */
async function endOf(client: PublicClient, address: Address, { payer, nonce }: Expected, { from, to }: BlockRange) {
  const topics = [ENDS, padHex(payer, { size: 32 }), nonce];
  const toBlock = typeof to === "bigint" ? numberToHex(to) : to;
  const params = [{ address, topics, fromBlock: numberToHex(from), toBlock }] as const;
  const [log] = await client.request({ method: "eth_getLogs", params: params as never });
  return log && (formatLog(log) as Log<bigint, number, false>);
}

const [AUTHORIZATION_USED, TRANSFER] = usdcEventsAbi;
const [AUTHORIZATION_CANCELED] = parseAbi([
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
]);
const ENDS = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED].map(toEventSelector);
