import {
  createPublicClient,
  custom,
  fallback,
  type HttpTransportConfig,
  http,
  type PublicClient,
  type Transport,
} from "viem";
import { currentTurn } from "./nodes.ts";
import { createBatchFetch, rpcFetch } from "./rpc.ts";

/**
 * `ready` nodes are used in their order, and `away` ones only when no other is left. `unread` and `wrong` ones are not
 * used, because their chain id could not be read yet, or belongs to another chain.
 */
export type NodeState = "ready" | "away" | "unread" | "wrong";

/** One of a chain's nodes. */
export interface RpcNode {
  /** Its position in the variable, counted from 1. Its URL may contain a key, so the position is its name. */
  readonly rank: number;
  readonly state: () => NodeState;
  /** A client of this node alone. */
  readonly client: PublicClient;
}

/** The result of a check. `chainId` is null if the node did not answer. */
export interface NodeCheck {
  readonly rank: number;
  readonly chainId: number | null;
}

export interface RpcNodes {
  readonly list: readonly RpcNode[];
  /** From now on, only checks may call the nodes. */
  hold(): void;
  /** Returns a transport that tries the ready nodes in turn, beginning with this one, counted from 0. */
  transport(turn: number, terms: HttpTransportConfig): Transport;
  /**
   * Reads the chain id of every node. A node is not used until it has answered. `heard` receives the result then, and
   * whenever a node comes back.
   */
  check(heard: (found: NodeCheck) => void): Promise<readonly NodeCheck[]>;
}

const TIMEOUT_MS = 10_000;
/** The timeout of a request that another node can take over. */
const FAILOVER_TIMEOUT_MS = 4_000;
/** The interval at which a node that is away is tried again. */
const RETURN_MS = 1_000;
/**
 * 400 and 413 reject the request itself. With any other error status, a provider is busy, unpaid, or has lost its own
 * nodes.
 */
const isRefusal = (status: number): boolean => status >= 400 && status !== 400 && status !== 413;

/** Opens the nodes behind these URLs, in order of preference. */
export function openNodes(urls: readonly string[], chainId: number): RpcNodes {
  const timeout = urls.length > 1 ? FAILOVER_TIMEOUT_MS : TIMEOUT_MS;
  let hear: ((found: NodeCheck) => void) | null = null;
  let isAwaited = false;
  let isHeld = false;

  const nodes = urls.map((url, place) => {
    const node = { rank: place + 1, state: "ready" as NodeState };
    const send = createBatchFetch(rpcFetch);
    const leave = () => {
      // A single node stays in use, so that the next request finds out whether it is back.
      if (node.state !== "ready" || urls.length === 1) return;
      node.state = "away";
      awaitReturn();
    };
    const fetchFn: typeof rpcFetch = async (to, init) => {
      if (isHeld) throw new Error(`node ${node.rank} is not in use yet`);
      if (node.state === "unread" || node.state === "wrong")
        throw new Error(
          `node ${node.rank} is not in use, because its chain id ${node.state === "wrong" ? "is wrong" : "has not been read"}`,
        );
      try {
        const response = await send(to, init);
        if (isRefusal(response.status)) leave();
        return response;
      } catch (error) {
        leave();
        throw error;
      }
    };
    const transport = (terms: HttpTransportConfig) => http(url, { timeout, fetchFn, ...terms });
    const alone = createPublicClient({
      transport: http(url, { timeout: FAILOVER_TIMEOUT_MS, retryCount: 0, fetchFn: rpcFetch }),
    });
    const check = async (): Promise<NodeCheck> => {
      const found = await alone.getChainId().catch(() => null);
      if (found === null) node.state = node.state === "ready" || node.state === "unread" ? "unread" : node.state;
      else node.state = found === chainId ? "ready" : "wrong";
      return { rank: node.rank, chainId: found };
    };
    return { node, transport, alone, check };
  });

  const isGone = ({ node }: (typeof nodes)[number]) => node.state === "away" || node.state === "unread";
  const awaitReturn = () => {
    if (isAwaited) return;
    isAwaited = true;
    setTimeout(async () => {
      const found = await Promise.all(nodes.filter(isGone).map(({ check }) => check()));
      isAwaited = false;
      for (const one of found) if (one.chainId !== null) hear?.(one);
      if (nodes.some(isGone)) awaitReturn();
    }, RETURN_MS).unref();
  };

  /** Rotates the ready nodes. The others come last, in case all ready ones have just failed. */
  const order = (turn: number) => {
    const ready = nodes.filter(({ node }) => node.state === "ready");
    const first = ready.length === 0 ? 0 : turn % ready.length;
    return [...ready.slice(first), ...ready.slice(0, first), ...nodes.filter(({ node }) => node.state !== "ready")];
  };

  return {
    list: nodes.map(({ node, alone }) => ({ rank: node.rank, state: () => node.state, client: alone })),
    hold() {
      isHeld = true;
    },
    transport(turn, { retryCount, ...terms }) {
      const [only] = nodes;
      if (only !== undefined && nodes.length === 1)
        return only.transport({ ...terms, ...(retryCount === undefined ? {} : { retryCount }) });
      return (options) => {
        const request: ReturnType<Transport>["request"] = (asked) =>
          fallback(order(turn + currentTurn()).map(({ transport }) => transport(terms)))({
            ...options,
            retryCount: 0,
          }).request(asked);
        return custom({ request }, retryCount === undefined ? {} : { retryCount })(options);
      };
    },
    async check(heard) {
      hear = heard;
      const found = await Promise.all(nodes.map(({ check }) => check()));
      if (nodes.some(isGone)) awaitReturn();
      return found;
    },
  };
}

/** A client that, if its chain has several nodes, can begin with another one. */
export type NodesClient = PublicClient & { readonly beginningWith?: (turn: number) => PublicClient };

/** Returns the client for one of several readings that must agree. Each uses another node, if there are several. */
export const forReading = (client: NodesClient, reading: number): PublicClient =>
  client.beginningWith?.(reading) ?? client;
