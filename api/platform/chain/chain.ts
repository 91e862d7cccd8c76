import { setTimeout as sleep } from "node:timers/promises";
import { createPublicClient, type HttpTransportConfig, type PublicClient, type TransactionReceipt } from "viem";
import { NETWORKS, type Network } from "../networks.ts";
import type { Address, Hex } from "../wallet.ts";
import { createNewestLogs, findSettlement, isBatch } from "./authorizations.ts";
import { createRecent } from "./batcher.ts";
import { forReading, type NodesClient, openNodes, type RpcNodes } from "./failover.ts";
import { createLogSearch } from "./log-search.ts";
import { createLogReader, type LogReader } from "./logs.ts";
import { agreementOn, asReading } from "./nodes.ts";
import { type Allowance, createAllowance } from "./pace.ts";
import { readAtBlock } from "./read-at-block.ts";
import { CALLS_IN_A_BATCH, discreet } from "./rpc.ts";
import { type ContractSignatures, createContractSignatures } from "./signatures.ts";
import { payerFunds, usdcCalls } from "./usdc.ts";
import type { Chain, Failed, FailedPayment, Head, Settlement, SettlementState } from "./view.ts";

interface Asked extends FailedPayment {
  readonly usdc: Address;
}

/**
 * Reads the state of a payment whose transaction was mined without settling it. Rejects if the node has not seen the
 * transaction's block.
 */
async function afterFailure(client: PublicClient, asked: Asked): Promise<Failed> {
  const { usdc, payer, nonce, transaction } = asked;
  const receipt = await client.getTransactionReceipt({ hash: transaction });
  const state = usdcCalls(usdc).isUsed(payer, nonce);
  const { number, of } = await readAtBlock(client, { calls: [state] });
  if (number < receipt.blockNumber) throw new Error("the node has not seen the block of a transaction that failed");
  if (of(state)) return { isUnused: false, isPayersDoing: false };
  return { isUnused: true, isPayersDoing: await isPayersDoing(client, asked, receipt) };
}

/**
 * Whether the payer caused the failure. It controls only its balance and the code of its account. It does not control
 * the time of the block, USDC's own refusals, or a batch that reverted as a whole. A failure that the block's state
 * does not explain is not attributed to it either.
 */
async function isPayersDoing(client: PublicClient, asked: Asked, receipt: TransactionReceipt): Promise<boolean> {
  if (receipt.status === "reverted" && isBatch(receipt.to)) return false;
  const read = () => causesAt(client, asked, receipt.blockNumber);
  // The first node may not have the block yet.
  const found = await read()
    .catch(() => asReading(1, read))
    .catch(() => null);
  if (found === null) return false;
  const { time, balance, isRefusedByUsdc, hasCode } = found;
  const isInTime = time > asked.validAfter && time < asked.validBefore;
  return isInTime && !isRefusedByUsdc && (hasCode || balance < asked.value);
}

async function causesAt(client: PublicClient, { usdc, payer, payTo }: Asked, blockNumber: bigint) {
  const { balanceOf, isPaused, isBlacklisted } = usdcCalls(usdc);
  const balance = balanceOf(payer);
  const refusals = [isPaused(), isBlacklisted(payer), isBlacklisted(payTo)];
  const [{ time, of }, code] = await Promise.all([
    readAtBlock(client, { calls: [balance, ...refusals], blockNumber }),
    client.getCode({ address: payer, blockNumber }),
  ]);
  const hasCode = code !== undefined && code !== "0x";
  return { time, balance: of(balance), isRefusedByUsdc: refusals.some(of), hasCode };
}

/** How long one reading is shared. */
const FRESH_MS = 2_000;
/** Two readings further apart are not compared, because the older one would delay everything. */
const PAIRED_MS = 60_000;

export interface FinalBlock {
  readonly number: bigint;
  readonly hash: Hex;
  /** Unix seconds. */
  readonly time: bigint;
}

/** The block that the node tags `finalized`. */
export interface Finality {
  /** Makes one reading; fails while the node does not answer. */
  latest(): Promise<FinalBlock>;
  /** Makes two readings and returns the older one, for work that is rare. */
  readTwice(): Promise<FinalBlock>;
  /**
   * Returns the older of two readings from separate requests, because nodes behind one address may disagree about the
   * final block. The newer one is shared for two seconds. Null if the allowance does not cover the missing readings.
   */
  confirmed(allowance?: Allowance): Promise<FinalBlock | null>;
  /**
   * Returns the newest block that two readings have confirmed, however old, without a call, because it stays final.
   * Null if there is none yet.
   */
  known(): FinalBlock | null;
}

interface Reading {
  readonly block: FinalBlock;
  readonly at: number;
}

export function createFinality(client: NodesClient, now: () => number = () => performance.now()): Finality {
  let last: Reading | null = null;
  let before: Reading | null = null;
  let known: FinalBlock | null = null;
  let reading: Promise<Reading> | null = null;
  let readings = 0;

  const read = (): Promise<Reading> => {
    reading ??= forReading(client, readings++ % 2)
      .getBlock({ blockTag: "finalized" })
      .then(({ number, hash, timestamp: time }) => {
        const read = { block: { number, hash, time }, at: now() };
        before = last;
        last = read;
        if (before !== null) known = newer(known, older(read.block, before.block));
        return read;
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  const isFresh = (one: Reading | null): one is Reading => one !== null && now() - one.at < FRESH_MS;
  const pair = () => (isFresh(last) && before !== null && last.at - before.at < PAIRED_MS ? [last, before] : null);

  return {
    latest: async () => (await read()).block,
    readTwice: async () => older((await read()).block, (await read()).block),
    async confirmed(allowance) {
      for (let tries = 0; tries < 2 && pair() === null; tries++) {
        if (allowance && allowance.left() === 0) return null;
        allowance?.spend();
        await read();
      }
      const [one, other] = pair() ?? [];
      if (one === undefined || other === undefined) return null;
      return older(one.block, other.block);
    },
    known: () => known,
  };
}

const older = (one: FinalBlock, other: FinalBlock): FinalBlock => (one.number < other.number ? one : other);

const newer = (one: FinalBlock | null, other: FinalBlock): FinalBlock =>
  one !== null && one.number > other.number ? one : other;

/**
 * Returns the state of a settlement's block. A final block never changes, so once its hash matches the settlement's, it
 * always will. That takes three nodes in turn, of which none may show another block. While the block is not final, one
 * node that shows it is enough.
 */
export async function settlementState(
  client: NodesClient,
  readFinal: () => Promise<FinalBlock | null>,
  { block, blockHash }: Pick<Settlement, "block" | "blockHash">,
): Promise<SettlementState> {
  const hashAt = async (_: number, reading: number) =>
    (await forReading(client, reading).getBlock({ blockNumber: BigInt(block) })).hash;
  const isThere = async (reading: number) => (await hashAt(block, reading).catch(() => null)) === blockHash;
  const final = await readFinal();
  if (final === null || final.number < BigInt(block))
    return (await isThere(0)) || (await isThere(1)) ? "pending" : "unknown";
  const found = await agreementOn({ hashAt }, { number: block, hash: blockHash }).catch(() => "gone");
  if (found === "gone") return "unknown";
  return found === "agreed" ? "final" : "pending";
}

const HEAD_CACHE_MS = 500;
/** The most calls for one look at a payment, whatever its age. */
const CALLS_A_LOOK = 4;

export interface ChainReader extends Chain, Pick<ContractSignatures, "verifyWrappedSignature"> {
  readonly client: NodesClient;
  readonly nodes: RpcNodes;
  readonly logs: LogReader;
  readonly finality: Finality;
  finalizedBlock(): Promise<number>;
  /** The same as `settlementState`, but reads the final block again, for work that is rare. */
  settlementStateNow: Chain["settlementState"];
}

export interface ChainSettings {
  /** One node's URL, or several in order of preference. */
  readonly rpcUrl: string | readonly string[];
  /** The most blocks to ask for in one `eth_getLogs`. */
  readonly logBlockRange: number;
  /** The most calls in one request, at first; 1 for no batches. */
  readonly rpcBatch?: number;
}

/**
 * Creates the reader of one chain over JSON-RPC, which batches concurrent calls. Transfers are found by (payer, nonce),
 * never by a reported hash.
 */
export function createChain(
  network: Network,
  { rpcUrl, logBlockRange, rpcBatch = CALLS_IN_A_BATCH }: ChainSettings,
): ChainReader {
  const facts = NETWORKS[network];
  const nodes = openNodes(typeof rpcUrl === "string" ? [rpcUrl] : rpcUrl, facts.chainId);
  const connect = (terms: HttpTransportConfig): NodesClient => {
    const [first, ...others] = nodes.list.map((_, turn) =>
      createPublicClient({ transport: nodes.transport(turn, { retryCount: 1, ...terms }), cacheTime: 0 }),
    ) as [PublicClient, ...PublicClient[]];
    if (others.length === 0) return first;
    const turns = [first, ...others];
    return first.extend(() => ({ beginningWith: (turn: number) => turns[turn % turns.length] ?? first }));
  };
  const batch = rpcBatch > 1 && { wait: 0, batchSize: rpcBatch };
  const client = connect({ batch });
  const heads = createRecent<Head>(HEAD_CACHE_MS);
  const newestHead = () => heads("newest", () => client.getBlock().then(asHead));
  const single = connect({});
  const signatures = createContractSignatures(client, single);
  // Some providers refuse a range with one response to the whole batch, which viem cannot read.
  const logs = createLogReader({ client: single, mostBlocks: logBlockRange });
  const finality = createFinality(client);
  const newestLogs = createNewestLogs(logs, facts.usdc.address);
  const { blockSeconds } = facts;
  const usdc = {
    client: connect({ batch, retryCount: 0 }),
    usdc: facts.usdc.address,
    blockSeconds,
    finality,
    search: createLogSearch({ logs, blockSeconds, pause: sleep }),
    width: logs.width,
  };
  return {
    client,
    nodes,
    logs,
    finality,
    head: discreet(newestHead),
    finalizedBlock: discreet(async () => Number((await finality.latest()).number)),
    verifyContractSignature: discreet(signatures.verifyContractSignature),
    isDeployed: discreet(signatures.isDeployed),
    verifyWrappedSignature: discreet(signatures.verifyWrappedSignature),
    funds: discreet((payer, nonces) => payerFunds(client, { usdc: facts.usdc.address, payer, nonces })),
    afterFailure: discreet((payment) => afterFailure(client, { usdc: facts.usdc.address, ...payment })),
    settlementState: discreet((settlement) => settlementState(client, finality.confirmed, settlement)),
    settlementStateNow: discreet((settlement) => settlementState(client, finality.readTwice, settlement)),
    look: discreet(async (expected) => {
      const paid = expected.justSubmitted === true ? await newestLogs(expected, await newestHead()) : null;
      if (paid !== null) return paid;
      const { view, head } = await findSettlement(usdc, expected, createAllowance(CALLS_A_LOOK));
      heads.saw("newest", head);
      return view;
    }),
  };
}

const asHead = ({ number, timestamp }: { number: bigint; timestamp: bigint }): Head => ({
  number: Number(number),
  time: timestamp,
});
