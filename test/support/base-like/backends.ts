import type { Call, Fault, Reply } from "../chain/rpc.ts";
import { replyTo } from "../chain/rpc.ts";
import { type HeadWatch, positionAt } from "./head.ts";
import type { Profile } from "./profiles.ts";
import { blockOf, numberOf, viewAt } from "./view.ts";

/** One of the nodes behind the URL. */
export interface Backend {
  /** Real milliseconds behind the chain. */
  readonly lagMs: number;
  /** Blocks behind the chain, on top of that; it never catches up with these. */
  readonly lagBlocks: bigint;
  /** It has no block after this one; null: it follows the chain. */
  readonly standsAt: bigint | null;
  /** Blocks, first and last, that it does not have: no logs, no receipts. */
  readonly holes: readonly (readonly [bigint, bigint])[];
}

export interface Backends {
  /** Changes one, counted from 0. */
  readonly change: (index: number, to: Partial<Backend>) => void;
  /** The backend whose turn it is. */
  readonly next: () => Fault;
}

export function openBackends(profile: Profile, watch: HeadWatch): Backends {
  const list = profile.backends.map(({ lagMs }): Backend => ({ lagMs, lagBlocks: 0n, standsAt: null, holes: [] }));
  let turn = 0;
  return {
    change: (index, to) => {
      const before = list[index];
      if (before === undefined) throw new Error(`There is no backend ${index}.`);
      list[index] = { ...before, ...to };
    },
    next: () => {
      const backend = list[turn++ % list.length] as Backend;
      return async (call, pass) => {
        const head = backend.standsAt ?? watch.asOf(backend.lagMs).number - backend.lagBlocks;
        const view = viewAt(positionAt(head > 0n ? head : 0n, profile));
        const reply = await view(call, pass);
        return reply === null ? null : withHoles(backend.holes, call, reply);
      };
    },
  };
}

function withHoles(holes: Backend["holes"], call: Call, reply: Reply): Reply {
  const isMissing = (block: bigint | null) =>
    block !== null && holes.some(([first, last]) => block >= first && block <= last);
  if (holes.length === 0 || reply.result === undefined || reply.result === null) return reply;
  if (call.method === "eth_getLogs")
    return replyTo(
      call,
      (reply.result as { readonly blockNumber: string }[]).filter(
        ({ blockNumber }) => !isMissing(numberOf(blockNumber)),
      ),
    );
  return isMissing(blockOf(reply.result)) ? replyTo(call, null) : reply;
}
