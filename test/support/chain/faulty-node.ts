import { viewAt } from "../base-like/view.ts";
import type { TestChain } from "./chain.ts";
import { askNode, type Fault, serveNode } from "./rpc.ts";

/** A JSON-RPC node in front of a chain that can be made to fail or lie. */
export interface FaultyNode {
  readonly url: string;
  /** From now on; null makes the node honest again. */
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
export const away: Fault = async () => null;

/** Disconnects at the next call of the method: before the chain sees it, or after, so that only its answer is lost. */
export const leaveAt = (node: FaultyNode, method: string, heard: "unheard" | "heard"): Promise<number> => {
  const left = Promise.withResolvers<number>();
  node.become(async (call, pass) => {
    if (call.method !== method) return pass(call);
    node.become(away);
    if (heard === "heard") await pass(call);
    left.resolve(Date.now());
    return null;
  });
  return left.promise;
};

/** A node that has not seen any block after this one, but still accepts transactions. */
export const standingStillAt = (head: bigint): Fault => viewAt({ head, safe: head - 2n, finalized: head - 2n });
