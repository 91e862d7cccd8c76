import { text } from "node:stream/consumers";
import { serveHttp } from "../http-server.ts";
import type { TestChain } from "./chain.ts";

/** A call that has arrived and has been neither answered nor passed on. */
export interface Hold {
  /** Resolves once the call has arrived. */
  readonly reached: Promise<void>;
  /** Passes it on, unless its caller is gone. */
  readonly release: () => void;
}

/**
 * A JSON-RPC node in front of a chain that holds calls back, so that a test knows exactly where their caller is
 * waiting.
 */
export interface HoldingNode {
  readonly url: string;
  /** Requests that have arrived so far. */
  readonly calls: () => number;
  /** Holds the next call of the method whose parameters contain these hex digits; later ones pass. */
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
