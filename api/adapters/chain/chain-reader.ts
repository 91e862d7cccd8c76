import { createPublicClient, type HttpTransportConfig, http, type PublicClient } from "viem";
import { NETWORKS, type Network } from "../../kernel/networks.ts";
import type { Chain } from "../../payments/chain.ts";
import type { Head } from "../../payments/scheme.ts";
import { createAllowance } from "./allowance.ts";
import { type ContractSignatures, createContractSignatures } from "./contract-signatures.ts";
import { createFinality, type Finality } from "./finality.ts";
import { findSettlement } from "./find-settlement.ts";
import { createGlance } from "./glance.ts";
import { createLogSearch } from "./log-search.ts";
import { createLogReader, type LogReader } from "./logs.ts";
import { payerFunds } from "./payer-funds.ts";
import { discreet } from "./rpc-errors.ts";
import { rpcFetch } from "./rpc-fetch.ts";
import { standing } from "./standing.ts";
import { unusedAfter } from "./unused-after.ts";

const HEAD_CACHE_MS = 500;
/** What free plans take in one request (docs.moralis.com, "RPC batch requests"). */
const MOST_IN_A_BATCH = 20;
const RPC = { timeout: 10_000, retryCount: 1, fetchFn: rpcFetch };
/** What one look at a payment may cost, whatever its age. */
const CALLS_A_LOOK = 4;

export interface ChainReader extends Chain, Pick<ContractSignatures, "verifyWrappedSignature"> {
  readonly client: PublicClient;
  readonly logs: LogReader;
  readonly finality: Finality;
  finalizedBlock(): Promise<number>;
  /** As `standing`, with readings of what is final made now: for work that comes along rarely. */
  standingNow: Chain["standing"];
}

export interface ChainSettings {
  readonly rpcUrl: string;
  /** The most blocks to ask for in one `eth_getLogs`. */
  readonly logBlockRange: number;
}

/**
 * Reads one chain over JSON-RPC, batching concurrent calls. Transfers are found by (payer, nonce), never by a reported
 * hash.
 */
export function createChain(network: Network, { rpcUrl, logBlockRange }: ChainSettings): ChainReader {
  const facts = NETWORKS[network];
  const connect = (terms: HttpTransportConfig) =>
    createPublicClient({ transport: http(rpcUrl, { ...RPC, ...terms }), cacheTime: 0 });
  const batch = { wait: 0, batchSize: MOST_IN_A_BATCH };
  const client = connect({ batch });
  const heads = cachedHead(client);
  const signatures = createContractSignatures(client);
  // Some providers refuse a range with one answer to the whole batch, which viem cannot read.
  const logs = createLogReader({ client: connect({}), mostBlocks: logBlockRange });
  const finality = createFinality(client);
  const glance = createGlance(logs, facts.usdc.address);
  const { blockSeconds } = facts;
  const usdc = {
    client: connect({ batch, retryCount: 0 }),
    usdc: facts.usdc.address,
    blockSeconds,
    finality,
    search: createLogSearch({ logs, blockSeconds, pause: (ms) => new Promise((done) => setTimeout(done, ms)) }),
    width: logs.width,
  };
  return {
    client,
    logs,
    finality,
    head: discreet(heads.head),
    finalizedBlock: discreet(async () => Number((await finality.latest()).number)),
    verifyContractSignature: discreet(signatures.verifyContractSignature),
    verifyWrappedSignature: discreet(signatures.verifyWrappedSignature),
    funds: discreet((payer, nonces) => payerFunds(client, { usdc: facts.usdc.address, payer, nonces })),
    unusedAfter: discreet((transaction, { payer, nonce }) =>
      unusedAfter(client, { usdc: facts.usdc.address, payer, nonce, transaction }),
    ),
    standing: discreet((settlement) => standing(client, finality.confirmed, settlement)),
    standingNow: discreet((settlement) => standing(client, finality.readTwice, settlement)),
    look: discreet(async (expected) => {
      const paid = expected.justSubmitted === true ? await glance(expected, await heads.head()) : null;
      if (paid !== null) return paid;
      const { view, head } = await findSettlement(usdc, expected, createAllowance(CALLS_A_LOOK));
      heads.saw(head);
      return view;
    }),
  };
}

const asHead = ({ number, timestamp }: { number: bigint; timestamp: bigint }): Head => ({
  number: Number(number),
  time: timestamp,
});

function cachedHead(client: PublicClient) {
  let cached: { at: number; head: Promise<Head> } | null = null;
  const keep = (head: Promise<Head>): Promise<Head> => {
    const entry = { at: Date.now(), head };
    cached = entry;
    // A failed read is not cached: the next caller tries again.
    head.catch(() => {
      if (cached === entry) cached = null;
    });
    return head;
  };
  return {
    head: (): Promise<Head> =>
      cached !== null && Date.now() - cached.at < HEAD_CACHE_MS ? cached.head : keep(client.getBlock().then(asHead)),
    /** Another read has just shown the head. */
    saw: (head: Head): void => void keep(Promise.resolve(head)),
  };
}
