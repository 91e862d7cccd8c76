/** A provider's error for a request above one of its limits. */
export interface ProviderError {
  readonly code: number;
  readonly message: string;
}

const quantity = (value: bigint): string => `0x${value.toString(16)}`;

/** A chain and its provider, as the service sees them. */
export interface Profile {
  readonly blockSeconds: number;
  /** The distance of this tag from the head, in blocks. */
  readonly safeBehind: number;
  readonly finalizedBehind: number;
  /** The base fee per gas on a quiet day, in wei. */
  readonly baseFee: bigint;
  readonly priorityFee: bigint;
  /** The least fee increase, in percent, with which a transaction replaces a pooled one of the same nonce. */
  readonly replacementPercent: bigint;
  /** One entry per backend with its real lag behind the chain, in milliseconds. Requests go to the backends in turn. */
  readonly backends: readonly { readonly lagMs: number }[];
  readonly batch: {
    readonly max: number;
    /** The response to a batch with too many calls, as one object instead of an array. */
    readonly tooMany: ProviderError;
    readonly tooManyStatus: number;
  };
  readonly logs: {
    readonly maxBlocks: bigint;
    readonly tooManyBlocks: (firstBlock: bigint) => ProviderError;
    /** The HTTP status of that refusal for a request that is not a batch. */
    readonly tooManyBlocksStatus: number;
    readonly maxLogs: number;
    readonly tooManyLogs: ProviderError;
  };
}

/** Base's outage of 5 August 2025, from 06:07 to 06:40 UTC, according to its post-mortem. */
export const HALT_MINUTES = 33;

/** The usual case: an archive plan of a large provider, whose nodes are a few blocks apart. */
export const BASE: Profile = {
  // docs.base.org, "Transaction finality": a block every 2 s.
  blockSeconds: 2,
  // The same page: batches reach Ethereum within about 2 minutes; `safe` follows the last one derived, a minute on average.
  safeBehind: 30,
  // The same page: two Ethereum epochs (64 slots of 12 s) after the batch, 13 to 20 minutes. We use 15.
  finalizedBehind: 450,
  // docs.base.org, "Configuration changelog": the minimum base fee since 19 February 2026; on a quiet day it is the fee.
  baseFee: 5_000_000n,
  // op-geth and base-reth: `eth_maxPriorityFeePerGas` is at least 0.001 gwei (`gpo.minsuggestedpriorityfee`).
  priorityFee: 1_000_000n,
  // geth's `txpool.pricebump` and reth's `txpool.pricebump`: 10.
  replacementPercent: 10n,
  backends: [{ lagMs: 0 }, { lagMs: 120 }, { lagMs: 40 }],
  // mainnet.base.org. alchemy.com/docs/reference/batch-requests: any order, answered concurrently.
  batch: {
    max: 10,
    tooMany: { code: -32014, message: "maximum 10 calls in 1 batch" },
    tooManyStatus: 200,
  },
  logs: {
    // quicknode.com/docs/base/eth_getLogs: 10,000 blocks on paid plans. Message and status:
    // github.com/eternalsafe/wallet/issues/57.
    maxBlocks: 10_000n,
    tooManyBlocks: () => ({ code: -32614, message: "eth_getLogs is limited to a 10,000 range" }),
    tooManyBlocksStatus: 413,
    // docs.infura.io, `eth_getLogs`, constraints.
    maxLogs: 10_000,
    tooManyLogs: { code: -32005, message: "query returned more than 10000 results" },
  },
};

/** The same chain through a free plan. */
export const FREE_PLAN: Profile = {
  ...BASE,
  // dRPC's free plan.
  batch: {
    max: 3,
    tooMany: {
      code: 31,
      message:
        "Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account at drpc.org",
    },
    tooManyStatus: 500,
  },
  logs: {
    ...BASE.logs,
    // alchemy.com/docs, `eth_getLogs`: 10 blocks on the free plan. Message: github.com/cartesi/rollups-node/pull/655.
    maxBlocks: 10n,
    tooManyBlocks: (first) => ({
      code: -32600,
      message: `You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [${quantity(first)}, ${quantity(first + 9n)}]`,
    }),
    tooManyBlocksStatus: 200,
  },
};

/** Providers' responses other than JSON-RPC, by HTTP status. */
export const REFUSALS: Readonly<Record<429 | 503, string>> = {
  // alchemy.com/docs/reference/throughput.
  429: JSON.stringify({
    jsonrpc: "2.0",
    error: {
      code: 429,
      message:
        "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message. If not, check out https://docs.alchemy.com/reference/throughput",
    },
  }),
  503: "no available server",
};

/** The errors with which the pools of geth and reth refuse a transaction. Providers pass them on. */
export const POOL_ERRORS = {
  known: { code: -32000, message: "already known" },
  nonceTooLow: { code: -32000, message: "nonce too low" },
  underpriced: { code: -32000, message: "replacement transaction underpriced" },
  full: { code: -32000, message: "txpool is full" },
  accountFull: { code: -32000, message: "account limit exceeded" },
} as const satisfies Readonly<Record<string, ProviderError>>;
