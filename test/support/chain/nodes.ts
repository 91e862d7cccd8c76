import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { viewAt } from "../base-like/view.ts";
import { serveHttp } from "../http-server.ts";
import type { TestChain } from "./chain.ts";
import { askNode, type Fault, serveNode } from "./rpc.ts";

/** A JSON-RPC node in front of a chain that can be made to fail or lie. */
export interface FaultyNode {
  readonly url: string;
  /** Sets the node's fault. Null makes it honest again. */
  readonly become: (fault: Fault | null) => void;
  readonly stop: () => void;
}

export async function startFaultyNode(chain: Pick<TestChain, "rpcUrl">): Promise<FaultyNode> {
  let fault: Fault | null = null;
  const pass = askNode(chain.rpcUrl);
  const server = await serveNode({ answer: (call) => (fault === null ? pass(call) : fault(call, pass)) });
  return {
    ...server,
    become: (next) => {
      fault = next;
    },
  };
}

/** Never answers. */
export const unreachable: Fault = async () => null;

/**
 * Disconnects at the next call of the method, either before the chain gets it or afterwards, so that only the response
 * is lost.
 */
export const leaveAt = (node: FaultyNode, method: string, heard: "unheard" | "heard"): Promise<number> => {
  const left = Promise.withResolvers<number>();
  node.become(async (call, pass) => {
    if (call.method !== method) return pass(call);
    node.become(unreachable);
    if (heard === "heard") await pass(call);
    left.resolve(Date.now());
    return null;
  });
  return left.promise;
};

/** A node without any block after this one, which still accepts transactions. */
export const stoppedAt = (head: bigint): Fault => viewAt({ head, safe: head - 2n, finalized: head - 2n });

/** A call that has arrived and waits for its release. */
export interface Hold {
  /** Resolves once the call has arrived. */
  readonly reached: Promise<void>;
  /** Passes it on, unless its caller is gone. */
  readonly release: () => void;
}

/**
 * A JSON-RPC node in front of a chain that delays calls, so that a test knows exactly where their caller is waiting.
 */
export interface HoldingNode {
  readonly url: string;
  /** The number of requests that have arrived. */
  readonly calls: () => number;
  /** Delays the next call of the method whose parameters contain these hex digits. Later ones pass. */
  readonly hold: (method: string, digits: string) => Hold;
  readonly stop: () => void;
}

interface Trap {
  readonly method: string;
  readonly digits: string;
  readonly reach: () => void;
  readonly released: Promise<void>;
}

export async function startHoldingNode(chain: TestChain): Promise<HoldingNode> {
  const traps = new Set<Trap>();
  let calls = 0;
  const server = await serveHttp(async (incoming, outgoing) => {
    try {
      const asked = await text(incoming);
      calls++;
      const trap = [...traps].find((candidate) => catches(candidate, asked));
      if (trap !== undefined) {
        traps.delete(trap);
        trap.reach();
        await trap.released;
      }
      if (outgoing.destroyed) return;
      const headers = { "content-type": "application/json" };
      const response = await fetch(chain.rpcUrl, { method: "POST", headers, body: asked });
      outgoing.writeHead(response.status, headers).end(await response.text());
    } catch {
      // The caller was killed, or the chain is shutting down.
      outgoing.destroy();
    }
  });
  return {
    ...server,
    calls: () => calls,
    hold(method, digits) {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      const plain = digits.replace(/^0x/, "").toLowerCase();
      traps.add({ method, digits: plain, reach: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

function catches({ method, digits }: Trap, asked: string): boolean {
  const calls = [JSON.parse(asked)].flat() as { method: string; params?: unknown }[];
  return calls.some((call) => call.method === method && JSON.stringify(call.params).toLowerCase().includes(digits));
}

/** A JSON-RPC node of a chain that can be killed and that records its calls. */
export interface MortalNode {
  readonly url: string;
  /** The methods of the calls that have arrived, oldest first. */
  readonly asked: readonly string[];
  /** Makes it a node of this chain. */
  readonly follow: (rpcUrl: string) => void;
  /** Breaks its connections, including those with a pending call, and refuses new ones. */
  readonly kill: () => void;
  readonly revive: () => Promise<void>;
  readonly stop: () => void;
}

export async function startMortalNode(rpcUrl: string): Promise<MortalNode> {
  const asked: string[] = [];
  let chain = rpcUrl;
  const server = createServer(async (incoming, outgoing) => {
    try {
      const body = await text(incoming);
      asked.push(...[JSON.parse(body)].flat().map(({ method }: { method: string }) => method));
      const headers = { "content-type": "application/json" };
      const response = await fetch(chain, { method: "POST", headers, body });
      outgoing.writeHead(response.status, headers).end(await response.text());
    } catch {
      outgoing.destroy();
    }
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const kill = () => {
    server.close();
    server.closeAllConnections();
  };
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    follow: (next) => {
      chain = next;
    },
    kill,
    revive: () => listen(port),
    stop: kill,
  };
}
