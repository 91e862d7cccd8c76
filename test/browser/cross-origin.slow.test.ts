import type { RequestListener } from "node:http";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import { build } from "esbuild";
import { Hono } from "hono";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { escrowed as expressRoute } from "../../packages/escrow/src/express.ts";
import { escrowed, memoryStore } from "../../packages/escrow/src/index.ts";
import { launchBrowser } from "../support/browser/browser.ts";
import { startSaleScene } from "../support/escrow/sale.ts";
import { forFile } from "../support/for-file.ts";
import { serveHttp } from "../support/http-server.ts";
import { settlements } from "../support/payments/on-chain.ts";

// A page of one origin pays a server of another origin with the stock clients.

const [scene, browser] = await Promise.all([forFile(startSaleScene()), forFile(launchBrowser())]);
const { chain, service, arbiter } = scene;

/** The stock clients, bundled for a page. */
const PAGE_CODE = `
  import { wrapAxiosWithPayment } from "@x402/axios";
  import { ExactEvmScheme } from "@x402/evm";
  import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
  import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
  import axios from "axios";
  import { privateKeyToAccount } from "viem/accounts";
  const clientOf = (key) => {
    const account = privateKeyToAccount(key);
    return new x402Client().register("eip155:*", new ExactEvmScheme(account)).register("eip155:*", new AuthCaptureEvmScheme(account));
  };
  const OPTIONS = { headers: { "content-type": "application/json", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } };
  window.pays = {
    async fetch(url, key) {
      const answer = await wrapFetchWithPayment(fetch, clientOf(key))(url, { method: "POST", body: "{}", ...OPTIONS });
      return { status: answer.status, paid: answer.headers.get("payment-response") !== null, decision: answer.headers.get("x-escrow-decision") };
    },
    async axios(url, key) {
      const answer = await wrapAxiosWithPayment(axios.create(), clientOf(key)).post(url, {}, OPTIONS);
      return { status: answer.status, paid: answer.headers["payment-response"] !== undefined, decision: answer.headers["x-escrow-decision"] ?? null };
    },
  };
`;

async function openPage() {
  const { outputFiles } = await build({
    stdin: { contents: PAGE_CODE, resolveDir: fileURLToPath(new URL("../..", import.meta.url)) },
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    logLevel: "error",
  });
  const html = `<!doctype html><title>Another origin</title><script type="module">${outputFiles[0]?.text.replaceAll("</script", "<\\/script")}</script>`;
  const site = await forFile(
    serveHttp((_request, response) => void response.writeHead(200, { "content-type": "text/html" }).end(html)),
  );
  const page = await browser.newPage();
  await page.goto(site.url);
  await page.waitForFunction("window.pays !== undefined");
  return page;
}

const HAIKU = { haiku: "An old silent pond" };

/** A shop of the escrow package on each framework, with support for preflight requests. */
async function openShops(): Promise<Readonly<Record<string, string>>> {
  const account = privateKeyToAccount(generatePrivateKey());
  await chain.setBalance(account.address, 10n ** 18n);
  const options = { account, rpcUrl: chain.rpcUrl, price: "0.10", arbiterUrl: arbiter.url, store: memoryStore() };
  const { fetch } = new Hono().on(
    ["OPTIONS", "POST"],
    "/haiku",
    escrowed(options, (c) => c.json(HAIKU)),
  );
  const express = createRequire(import.meta.url)("express") as () => RequestListener & {
    all(path: string, ...handlers: unknown[]): void;
  };
  const app = express();
  app.all("/haiku", expressRoute(options), (_: unknown, response: { json(body: unknown): void }) =>
    response.json(HAIKU),
  );
  return { Hono: await listening(getRequestListener(fetch)), Express: await listening(app) };
}

async function listening(listener: RequestListener): Promise<string> {
  return (await forFile(serveHttp(listener))).url;
}

const page = await openPage();
const shops = await openShops();

interface Paid {
  readonly status: number;
  readonly paid: boolean;
  readonly decision: string | null;
}

const payAs = (client: string, url: string, key: string): Promise<Paid> =>
  page.evaluate(`window.pays.${client}(${JSON.stringify(url)}, ${JSON.stringify(key)})`);

async function newKey() {
  const key = generatePrivateKey();
  const { address } = privateKeyToAccount(key);
  await chain.fund(address, 1_000_000n);
  return { key, address };
}

describe.each(["fetch", "axios"])("@x402/%s in a cross-origin page", (client) => {
  test("The client pays the service and reads the payment response", async () => {
    const { key, address } = await newKey();
    expect(await payAs(client, `${service.url}/test/basic`, key)).toEqual({ status: 200, paid: true, decision: null });
    expect(await settlements(chain, address)).toHaveLength(1);
  });

  test.each(["Hono", "Express"])("The client pays an escrow shop on %s and reads the decision", async (framework) => {
    const { key } = await newKey();
    expect(await payAs(client, `${shops[framework]}/haiku`, key)).toEqual({
      status: 200,
      paid: true,
      decision: "release",
    });
  });
});

test("MCP responds to a page of another origin", async () => {
  const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
    "x-client-version": "1",
  };
  const status = await page.evaluate(
    `fetch(${JSON.stringify(`${service.url}/mcp`)}, ${JSON.stringify({ method: "POST", headers, body: JSON.stringify(body) })}).then(({ status }) => status)`,
  );
  expect(status).toBe(200);
});
