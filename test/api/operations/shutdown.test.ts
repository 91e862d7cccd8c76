import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { createHttpServer, drain, listen } from "../../../api/platform/http/server.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { type ApiProcess, startApiStage } from "../../support/service/api-process.ts";
import { binary } from "../../support/service/database.ts";

const PATIENT = { timeout: 10_000, interval: 20 };

const stage = await forFile(startApiStage());
const node = await forFile(startHoldingNode(stage.chain));

async function open(url: string): Promise<Socket> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  return socket;
}

/** Returns "connected" or the code of the connection error. */
const connecting = async (url: string): Promise<string> => {
  try {
    (await open(url)).destroy();
    return "connected";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
};

/** Starts a paid request and holds it right before its settlement is broadcast. */
async function startPaying(url: string) {
  const payer = await newPayer(stage.chain);
  const signed = await signPayment(payer);
  const held = node.hold("eth_sendRawTransaction", payer.address);
  const answering = post(`${url}/test/basic`, v2(signed));
  await held.reached;
  return { signed, answering, release: held.release };
}

/** Returns the milliseconds that the process takes to exit with 0. */
async function stopped(api: ApiProcess, signal: NodeJS.Signals): Promise<number> {
  const began = performance.now();
  process.kill(api.pid, signal);
  expect(await api.ended).toBe(0);
  return performance.now() - began;
}

test("A stop answers a paid request in progress, refuses new connections, closes idle ones, and exits with 0", async () => {
  const api = await stage.start(node);
  // One connection has had its response, and the other has sent no request yet.
  const [kept, silent] = await Promise.all([open(api.url), open(api.url)]);
  kept.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(String((await once(kept, "data"))[0])).toMatch(/^HTTP\/1\.1 200 .*"ok":true/s);
  await send(`${api.url}/health`);
  const { signed, answering, release } = await startPaying(api.url);

  process.kill(api.pid, "SIGTERM");
  await once(kept, "close");
  await expect.poll(() => connecting(api.url), PATIENT).toBe("ECONNREFUSED");
  expect(silent.destroyed).toBe(false);
  release();

  const answer = await answering;
  expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"]);
  await chargedOnce(stage.chain, signed);
  expect(await api.ended).toBe(0);
  const stored = await stage.owner.query("SELECT state FROM payment WHERE nonce = $1", [
    binary(signed.authorization.nonce),
  ]);
  expect(stored.rows).toEqual([{ state: "fulfilled" }]);
}, 30_000);

test("/ready returns 503 during a stop while the port stays open and each connection closes after its response", async () => {
  const api = await stage.start(node, { DRAIN_SECONDS: "1" });
  const ready = () => send(`${api.url}/ready`);
  expect(await ready()).toMatchObject({ status: 200, body: { ok: true } });

  process.kill(api.pid, "SIGTERM");
  await expect.poll(async () => (await ready()).status, PATIENT).toBe(503);
  expect((await ready()).body).toMatchObject({ code: "not_available", detail: expect.stringContaining("stopping") });
  const answer = await fetch(`${api.url}/health`);
  expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"]);
  expect(await connecting(api.url)).toBe("connected");
  expect(await api.ended).toBe(0);
  expect(await connecting(api.url)).toBe("ECONNREFUSED");
});

test("A connection without a request is closed once all requests are answered", async () => {
  const server = createHttpServer(() => new Response());
  const silent = await open(`http://127.0.0.1:${await listen([server], 0, "127.0.0.1")}`);
  const closed = once(silent.resume(), "close");
  await drain([server]);
  await closed;
}, 5_000);

test("A request that exceeds the stop limit is cut off with exit code 0, the next process finishes it, and an idle process stops quickly", async () => {
  const api = await stage.start(node, { STOP_WITHIN_SECONDS: "1" });
  const { signed, answering } = await startPaying(api.url);
  const cut = answering.then(String, () => "cut off");
  expect(await stopped(api, "SIGTERM")).toBeLessThan(15_000);
  expect(await cut).toBe("cut off");

  await stage.endLeases();
  const next = await stage.start(node);
  const again = () => post(`${next.url}/test/basic`, v2(signed));
  await expect.poll(async () => (await again()).status, { timeout: 20_000, interval: 200 }).toBe(200);
  await chargedOnce(stage.chain, signed);
  expect(await stopped(next, "SIGINT")).toBeLessThan(15_000);
}, 40_000);

test("A second signal ends the process immediately", async () => {
  const api = await stage.start(node);
  const { answering } = await startPaying(api.url);
  const cut = answering.then(String, () => "cut off");
  process.kill(api.pid, "SIGTERM");
  await expect.poll(api.output, PATIENT).toContain('"msg":"stopping"');
  process.kill(api.pid, "SIGINT");
  expect([await api.ended, await cut]).toEqual(["SIGINT", "cut off"]);
});
