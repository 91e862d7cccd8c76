import type { IncomingMessage, ServerResponse } from "node:http";
import { createPublicClient, type Hex, http, TimeoutError } from "viem";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { createBatchFetch, isTransport, rpcFetch } from "../../../../api/platform/chain/rpc.ts";
import { type LocalServer, serveHttp } from "../../../support/http-server.ts";

describe("A single call", () => {
  const servers: LocalServer[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.stop();
  });

  /** Starts a node that answers every request with `answer`. */
  async function nodeThat(answer: (incoming: IncomingMessage, outgoing: ServerResponse) => unknown) {
    const server = await serveHttp(async (incoming, outgoing) => void answer(incoming, outgoing));
    servers.push(server);
    return server.url;
  }

  const ask = (url: string, timeout = 20_000) =>
    createPublicClient({ transport: http(url, { fetchFn: rpcFetch, timeout, retryCount: 0 }) }).request({
      method: "eth_chainId",
    });
  const JSON_TYPE = { "content-type": "application/json" };
  const reply = JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x2105" });

  test("A JSON-RPC error in an HTTP error response is reported as the node's error", async () => {
    const error = { code: -32005, message: "too many blocks" };
    const url = await nodeThat((_, outgoing) =>
      outgoing.writeHead(400, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id: 1, error })),
    );
    await expect(ask(url)).rejects.toMatchObject({ details: "too many blocks" });
  });

  test("An HTTP error has the response's status and headers", async () => {
    const url = await nodeThat((_, outgoing) => outgoing.writeHead(429, { "retry-after": "7" }).end("slow down"));
    const error = await ask(url).catch((thrown) => thrown);
    expect([isTransport(error), error.status, error.headers.get("Retry-After")]).toEqual([true, 429, "7"]);
  });

  test("A redirect is not followed", async () => {
    const seen: string[] = [];
    const other = await nodeThat((_, outgoing) => {
      seen.push("other");
      outgoing.writeHead(200, JSON_TYPE).end(reply);
    });
    const url = await nodeThat((_, outgoing) => outgoing.writeHead(307, { location: other }).end());
    await expect(ask(url)).rejects.toMatchObject({ status: 307 });
    expect(seen).toEqual([]);
  });

  test("A response that stops midway times out", async () => {
    const url = await nodeThat((_, outgoing) => void outgoing.writeHead(200, JSON_TYPE).write(reply.slice(0, 9)));
    const error = await ask(url, 500).catch((thrown) => thrown);
    expect([error instanceof TimeoutError || error.cause instanceof TimeoutError, isTransport(error)]).toEqual([
      true,
      true,
    ]);
  });

  test("A response that is too large is aborted", async () => {
    const url = await nodeThat((_, outgoing) => {
      outgoing.on("error", () => undefined).writeHead(200, JSON_TYPE);
      const more = () => {
        while (!outgoing.destroyed && outgoing.write("x".repeat(65_536)));
        if (!outgoing.destroyed) outgoing.once("drain", more);
      };
      more();
    });
    const error = await ask(url).catch((thrown) => thrown);
    expect([isTransport(error), error.details]).toEqual([
      true,
      "the node cannot be read: UND_ERR_RES_EXCEEDED_MAX_SIZE",
    ]);
  });

  test("The error of an unreachable node does not contain its URL", async () => {
    const url = await nodeThat(({ socket }) => void socket.destroy());
    const error = await ask(url).catch((thrown) => thrown);
    expect([isTransport(error), error.details]).toEqual([true, "the node cannot be read: UND_ERR_SOCKET"]);
  });
});

describe("Batches of calls", () => {
  interface Call {
    readonly id: number;
    readonly params: readonly unknown[];
  }

  interface NodeReply {
    readonly status?: number;
    readonly body: unknown;
  }

  /** A node that answers a balance request with its own parameter, unless `objection` replaces the whole response. */
  async function nodeWith(objection: (calls: readonly Call[], isArray: boolean) => NodeReply | null) {
    const sizes: number[] = [];
    const { url, stop } = await serveHttp(async (incoming, outgoing) => {
      const asked = JSON.parse(Buffer.concat(await incoming.toArray()).toString()) as Call | readonly Call[];
      const calls = [asked].flat() as readonly Call[];
      sizes.push(calls.length);
      const answers = calls.map(({ id, params }) => ({ jsonrpc: "2.0", id, result: params[0] }));
      const { status = 200, body } = objection(calls, Array.isArray(asked)) ?? {
        body: Array.isArray(asked) ? answers : answers[0],
      };
      const text = typeof body === "string" ? body : JSON.stringify(body);
      outgoing.writeHead(status, { "content-type": "application/json" }).end(text);
    });
    onTestFinished(stop);
    const transport = http(url, {
      batch: { wait: 0, batchSize: 10 },
      retryCount: 0,
      fetchFn: createBatchFetch(rpcFetch),
    });
    const client = createPublicClient({ transport });
    const addressOf = (number: number): Hex => `0x${String(number).padStart(40, "0")}`;
    /** Returns for each of `count` concurrent calls whether it got its own answer, another's, or an error. */
    const askFor = (count: number) =>
      Promise.all(
        Array.from({ length: count }, async (_, number) => {
          const params = [addressOf(number), "latest"] as [Hex, "latest"];
          const answer = await client.request({ method: "eth_getBalance", params }).catch((error: Error) => error);
          return answer === params[0] ? "its own" : answer instanceof Error ? answer.name : `another: ${answer}`;
        }),
      );
    return { sizes, askFor };
  }

  const own = (count: number) => Array.from({ length: count }, () => "its own");
  const error = (code: number, message: string) => ({ jsonrpc: "2.0", id: null, error: { code, message } });
  const above = (most: number, reply: NodeReply) => (calls: readonly Call[], isArray: boolean) =>
    isArray && calls.length > most ? reply : null;

  describe("Refused batches", () => {
    test.for<[string, number, NodeReply, number[]]>([
      ["Base", 4, { body: error(-32014, "maximum 4 calls in 1 batch") }, [3, 3, 3, 1]],
      ["dRPC", 3, { status: 500, body: error(31, "Batch of more than 3 requests are not allowed") }, [3, 3, 3, 1]],
      ["a proxy", 5, { status: 413, body: "<h1>413 Request Entity Too Large</h1>" }, [5, 5]],
      ["a node without batches", 0, { status: 400, body: error(-32600, "Invalid Request") }, Array(10).fill(1)],
      ["a node that names neither", 9, { body: error(-32000, "not allowed") }, [5, 5]],
      ["a node that refuses in plain text", 2, { status: 422, body: "batching is off" }, [2, 2, 2, 2, 2]],
      ["a busy node's code", 2, { status: 429, body: error(-32005, "too many requests in batch") }, [2, 2, 2, 2, 2]],
    ])("A batch refused by %s is split, and the smaller size is remembered", async ([, most, refusal, next]) => {
      const { askFor, sizes } = await nodeWith(above(most, refusal));
      expect(await askFor(10)).toEqual(own(10));
      sizes.length = 0;
      expect(await askFor(10)).toEqual(own(10));
      expect(sizes.toSorted((a, b) => b - a)).toEqual(next);
    });

    test("A refusal may be an array of one error, as from geth, or an error for each call", async () => {
      for (const answersAll of [false, true]) {
        const { askFor, sizes } = await nodeWith((calls) => {
          const refused = calls.map(({ id }) => ({ ...error(-32600, "batch too large"), id }));
          return calls.length <= 5 ? null : { body: answersAll ? refused : refused.slice(0, 1) };
        });
        expect([await askFor(10), await askFor(10)]).toEqual([own(10), own(10)]);
        expect(sizes).toEqual([10, 5, 5, 5, 5]);
      }
    });
  });

  test("A missing or repeated answer in a batch never gives a call another call's answer", async () => {
    for (const spoil of [(all: unknown[]) => all.slice(1), (all: unknown[]) => [all[1], ...all.slice(1)]]) {
      const { askFor } = await nodeWith((calls, isArray) =>
        isArray ? { body: spoil(calls.map(({ id, params }) => ({ jsonrpc: "2.0", id, result: params[0] }))) } : null,
      );
      expect(await askFor(7)).toEqual(own(7));
    }
  });

  test("A batch answered in another order or with ids as strings is not sent again", async () => {
    for (const spoil of [
      (all: readonly { id: number }[]) => all.toReversed(),
      (all: readonly { id: number }[]) => all.map((one) => ({ ...one, id: String(one.id) })),
    ]) {
      const { askFor, sizes } = await nodeWith((calls) => ({
        body: spoil(calls.map(({ id, params }) => ({ jsonrpc: "2.0", id, result: params[0] }))),
      }));
      expect([await askFor(7), sizes]).toEqual([own(7), [7]]);
    }
  });

  test("A call that makes the node refuse the whole batch fails alone and does not reduce the batch size", async () => {
    const isBad = ({ params }: Call) => params[0] === `0x${"3".padStart(40, "0")}`;
    const { askFor, sizes } = await nodeWith((calls) =>
      calls.some(isBad) ? { status: 413, body: error(-32614, "eth_getLogs is limited to a 10,000 range") } : null,
    );
    const answers = await askFor(10);
    expect(answers.filter((answer) => answer === "its own")).toHaveLength(9);
    expect(answers[3]).toMatch(/Error/);
    sizes.length = 0;
    await askFor(3);
    await askFor(10);
    expect(sizes.slice(0, 2)).toEqual([3, 10]);
  });

  test("A busy or broken node gets the batch once, and the batch size does not change", async () => {
    for (const reply of [
      { status: 429, body: error(429, "exceeded its compute units per second capacity") },
      { status: 200, body: error(-32016, "over rate limit") },
      { status: 503, body: "no available server" },
      { status: 502, body: "<h1>502 Bad Gateway</h1>" },
    ]) {
      let isDown = true;
      const { askFor, sizes } = await nodeWith(() => (isDown ? reply : null));
      for (const answer of await askFor(10))
        expect(answer).toMatch(/^(HttpRequest|Rpc|LimitExceeded|UnknownRpc).*Error$/);
      isDown = false;
      expect(await askFor(10)).toEqual(own(10));
      expect(sizes).toEqual([10, 10]);
    }
  });

  test.for<[string, unknown]>([
    ["null", null],
    ["an empty object", {}],
    ["an array of one error of a busy node", [error(-32016, "over rate limit")]],
  ])("A success status with %s is an error of each call that viem retries", async ([, body]) => {
    const { askFor } = await nodeWith(() => ({ body }));
    expect(await askFor(3)).toEqual(Array(3).fill("InternalRpcError"));
  });
});
