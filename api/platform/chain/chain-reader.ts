import { setTimeout as sleep } from "node:timers/promises";
import { createPublicClient, type HttpTransportConfig, http, type PublicClient } from "viem";
import { NETWORKS, type Network } from "../networks.ts";
import type { Chain } from "../../payments/chain.ts";
import type { Head } from "../../payments/scheme.ts";
import { afterFailure } from "./after-failure.ts";
import { createAllowance } from "./allowance.ts";
import { CALLS_IN_A_BATCH, createBatchFetch } from "./batch-fetch.ts";
import { type ContractSignatures, createContractSignatures } from "./contract-signatures.ts";
import { createFinality, type Finality } from "./finality.ts";
import { findSettlement } from "./find-settlement.ts";
import { createGlance } from "./glance.ts";
import { createLogSearch } from "./log-search.ts";
import { createLogReader, type LogReader } from "./logs.ts";
import { payerFunds } from "./payer-funds.ts";
import { createRecent } from "./recent.ts";
import { discreet } from "./rpc-errors.ts";
import { rpcFetch } from "./rpc-fetch.ts";
import { standing } from "./standing.ts";

const HEAD_CACHE_MS = 500;
const RPC = { timeout: 10_000, retryCount: 1 };
/** What one look at a payment may cost, whatever its age. */
const CALLS_A_LOOK = 4;

export interface ChainReader
  extends Omit<Chain, "verifyContractSignature">,
    Pick<ContractSignatures, "verifyContractSignature" | "verifyWrappedSignature"> {
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
  /** The most calls in one request, at first; 1 for no batches. */
  readonly rpcBatch?: number;
}

/**
 * Reads one chain over JSON-RPC, batching concurrent calls. Transfers are found by (payer, nonce), never by a reported
 * hash.
 */
export function createChain(
  network: Network,
  { rpcUrl, logBlockRange, rpcBatch = CALLS_IN_A_BATCH }: ChainSettings,
): ChainReader {
  const facts = NETWORKS[network];
  const fetchFn = createBatchFetch(rpcFetch);
  const connect = (terms: HttpTransportConfig) =>
    createPublicClient({ transport: http(rpcUrl, { ...RPC, fetchFn, ...terms }), cacheTime: 0 });
  const batch = rpcBatch > 1 && { wait: 0, batchSize: rpcBatch };
  const client = connect({ batch });
  const heads = createRecent<Head>(HEAD_CACHE_MS);
  const newestHead = () => heads("newest", () => client.getBlock().then(asHead));
  const single = connect({});
  const signatures = createContractSignatures(client, single);
  // Some providers refuse a range with one answer to the whole batch, which viem cannot read.
  const logs = createLogReader({ client: single, mostBlocks: logBlockRange });
  const finality = createFinality(client);
  const glance = createGlance(logs, facts.usdc.address);
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
    logs,
    finality,
    head: discreet(newestHead),
    finalizedBlock: discreet(async () => Number((await finality.latest()).number)),
    verifyContractSignature: discreet(signatures.verifyContractSignature),
    isDeployed: discreet(signatures.isDeployed),
    verifyWrappedSignature: discreet(signatures.verifyWrappedSignature),
    funds: discreet((payer, nonces) => payerFunds(client, { usdc: facts.usdc.address, payer, nonces })),
    afterFailure: discreet((payment) => afterFailure(client, { usdc: facts.usdc.address, ...payment })),
    standing: discreet((settlement) => standing(client, finality.confirmed, settlement)),
    standingNow: discreet((settlement) => standing(client, finality.readTwice, settlement)),
    look: discreet(async (expected) => {
      const paid = expected.justSubmitted === true ? await glance(expected, await newestHead()) : null;
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
