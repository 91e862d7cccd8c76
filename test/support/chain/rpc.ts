import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type LocalServer, serveHttp } from "../http-server.ts";

/** One JSON-RPC call. */
export interface Call {
  readonly id: number;
  readonly method: string;
  readonly params?: readonly unknown[];
}

export interface Reply {
  readonly jsonrpc: "2.0";
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** An HTTP response that is not a JSON-RPC reply. */
export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A node's reply to a call, or null to close the connection of the whole request. */
export type Fault = (call: Call, pass: (call: Call) => Promise<Reply>) => Promise<Reply | null>;

export const replyTo = ({ id }: Call, result: unknown): Reply => ({ jsonrpc: "2.0", id, result });
export const refuse = ({ id }: Call, code: number, message: string): Reply => ({
  jsonrpc: "2.0",
  id,
  error: { code, message },
});

/** Applies the fault to some of a method's calls, counted from 1. */
export function sometimes(method: string, isMet: (n: number) => boolean, fault: Fault): Fault {
  let calls = 0;
  return async (call, pass) => {
    if (call.method !== method) return pass(call);
    calls += 1;
    return isMet(calls) ? fault(call, pass) : pass(call);
  };
}

/** A node whose head is this block, as far as its logs show. */
export const logsUpTo =
  (head: number): Fault =>
  async (call, pass) => {
    const [filter] = call.params as [{ fromBlock: string; toBlock: string }];
    if (Number(filter.fromBlock) > head) return replyTo(call, []);
    const toBlock = `0x${Math.min(head, Number(filter.toBlock)).toString(16)}`;
    return pass({ ...call, params: [{ ...filter, toBlock }] });
  };

const JSON_TYPE = { "content-type": "application/json" };

/** Calls the node at the URL. */
export const askNode =
  (url: string) =>
  async (call: Call): Promise<Reply> => {
    const response = await fetch(url, {
      method: "POST",
      headers: JSON_TYPE,
      body: JSON.stringify({ jsonrpc: "2.0", ...call }),
    });
    return (await response.json()) as Reply;
  };

export interface AnsweringNode {
  /** Null closes the connection. */
  readonly answer: (call: Call) => Promise<Reply | null>;
  /** Runs before any call of the request is answered. Returns a refusal of the whole request, or null. */
  readonly refuse?: (calls: readonly Call[]) => Refusal | null;
}

/** Serves JSON-RPC over HTTP, batches included. */
export const serveNode = ({ answer, refuse = () => null }: AnsweringNode): Promise<LocalServer> =>
  serveHttp(async (incoming, outgoing) => {
    const hangUp = () => void outgoing.destroy();
    const asked = await readCalls(incoming).catch(() => null);
    if (asked === null) return hangUp();
    const refusal = refuse([asked].flat());
    if (refusal !== null) {
      outgoing.writeHead(refusal.status, { ...JSON_TYPE, ...refusal.headers }).end(refusal.body);
      return;
    }
    const replies = await Promise.all([asked].flat().map(answer)).catch(() => [null]);
    if (replies.includes(null)) return hangUp();
    outgoing.writeHead(200, JSON_TYPE).end(JSON.stringify(Array.isArray(asked) ? replies : replies[0]));
  });

const readCalls = async (incoming: IncomingMessage) => JSON.parse(await text(incoming)) as Call | Call[];
