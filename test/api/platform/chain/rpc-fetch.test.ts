import type { IncomingMessage, ServerResponse } from "node:http";
import { createPublicClient, http, TimeoutError } from "viem";
import { afterEach, expect, test } from "vitest";
import { isTransport, rpcFetch } from "../../../../api/platform/chain/rpc.ts";
import { type LocalServer, serveHttp } from "../../../support/http-server.ts";

const servers: LocalServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop();
});

/** A node that answers every request so. */
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

test("a node gets the call, and its answer arrives", async () => {
  const url = await nodeThat(({ method, headers }, outgoing) =>
    outgoing
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: [method, headers["content-type"], headers["user-agent"]] })),
  );
  expect(await ask(url)).toEqual(["POST", "application/json", "node"]);
});

test("an error in an answer that is none of HTTP's is the node's own", async () => {
  const error = { code: -32005, message: "too many blocks" };
  const url = await nodeThat((_, outgoing) =>
    outgoing.writeHead(400, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id: 1, error })),
  );
  await expect(ask(url)).rejects.toMatchObject({ details: "too many blocks" });
});

test("a status that is an error has its headers", async () => {
  const url = await nodeThat((_, outgoing) => outgoing.writeHead(429, { "retry-after": "7" }).end("slow down"));
  const error = await ask(url).catch((thrown) => thrown);
  expect([isTransport(error), error.status, error.headers.get("Retry-After")]).toEqual([true, 429, "7"]);
});

test("a redirect is not followed", async () => {
  const seen: string[] = [];
  const other = await nodeThat((_, outgoing) => {
    seen.push("other");
    outgoing.writeHead(200, JSON_TYPE).end(reply);
  });
  const url = await nodeThat((_, outgoing) => outgoing.writeHead(307, { location: other }).end());
  await expect(ask(url)).rejects.toMatchObject({ status: 307 });
  expect(seen).toEqual([]);
});

test("an answer that stops in its middle is given up", async () => {
  const url = await nodeThat((_, outgoing) => void outgoing.writeHead(200, JSON_TYPE).write(reply.slice(0, 9)));
  const error = await ask(url, 500).catch((thrown) => thrown);
  expect([error instanceof TimeoutError || error.cause instanceof TimeoutError, isTransport(error)]).toEqual([
    true,
    true,
  ]);
});

test("an answer that is too large is given up", async () => {
  const url = await nodeThat((_, outgoing) => {
    outgoing.on("error", () => undefined).writeHead(200, JSON_TYPE);
    const more = () => {
      while (!outgoing.destroyed && outgoing.write("x".repeat(65_536)));
      if (!outgoing.destroyed) outgoing.once("drain", more);
    };
    more();
  });
  const error = await ask(url).catch((thrown) => thrown);
  expect([isTransport(error), error.details]).toEqual([true, "the node cannot be read: UND_ERR_RES_EXCEEDED_MAX_SIZE"]);
});

test("a node that does not answer is named by no address", async () => {
  const url = await nodeThat(({ socket }) => void socket.destroy());
  const error = await ask(url).catch((thrown) => thrown);
  expect([isTransport(error), error.details]).toEqual([true, "the node cannot be read: UND_ERR_SOCKET"]);
});
