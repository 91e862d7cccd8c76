import { readFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { HDAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { STOCK_CLIENTS } from "../../support/behaviour/agents.ts";
import { codeOn, type Reader, save, serve } from "../../support/browser/page-code.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { linkOwn } from "../../support/escrow/package.ts";
import { folderForFile } from "../../support/folder.ts";
import { forFile } from "../../support/for-file.ts";
import { newClient } from "../../support/packages/mcp.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { v2 } from "../../support/payments/requests.ts";
import { signPayment } from "../../support/payments/signing.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

// The code of the integrations page, taken from it and run as it stands.

const fileOf = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const [VERIFIED, UNKNOWN] = [devAccount(1), devAccount(2)];

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
await STOCK_CLIENTS[0]?.post(`${service.url}/test/basic`, VERIFIED);
const home = await folderForFile("integrations-code-");
const reader: Reader = { home, env: {} };
const { blocks, block } = await codeOn(`${service.url}/integrations`);
await save(reader, block("trust"));
for (const name of ["hono", "@hono/node-server"]) await linkOwn(home, name);

const HAIKU = { haiku: "An old silent pond" };
const payment = async (payer: HDAccount) => v2(await signPayment(payer, {}));

/** Unpaid and verified requests pass, an unknown wallet's does not. */
async function expectGuarded(send: (headers: Record<string, string>) => Promise<Response>): Promise<void> {
  expect(await (await send({})).json()).toEqual(HAIKU);
  expect(await (await send(await payment(VERIFIED))).json()).toEqual(HAIKU);
  expect((await send({ "payment-signature": "no payment" })).status).toBe(200);
  const refused = await send(await payment(UNKNOWN));
  expect([refused.status, await refused.json()]).toEqual([
    403,
    { error: expect.stringContaining("Nothing was charged"), how_to_test: `${service.url}/inspect` },
  ]);
}

const server = (id: string) => async () => {
  const origin = await serve(reader, block(id));
  await expectGuarded((headers) => fetch(`${origin}/paid/haiku`, { method: "POST", headers }));
};

test("the middleware for Hono serves verified agents only", server("hono"));

test("the middleware for Express serves verified agents only", async () => {
  await linkOwn(reader.home, "express");
  await server("express")();
});

test("the route for Next serves verified agents only", async () => {
  // Next resolves the module beside the route as any bundler does.
  const path = await save(reader, { ...block("next"), caption: "route.mjs" });
  const { POST } = (await import(pathToFileURL(path).href)) as { POST: (request: Request) => Promise<Response> };
  await expectGuarded((headers) => POST(new Request("http://shop.example/paid/haiku", { method: "POST", headers })));
});

test("the configuration for MCP clients starts twelve tools, from this service", async () => {
  const { mcpServers } = JSON.parse(block("mcp").text);
  const { command, args, env } = mcpServers["agent-payment-trust"];
  expect(env).toEqual({ BASE_URL: service.url, PAYER_PRIVATE_KEY: "0x…" });
  const registry = await startRegistry();
  onTestFinished(registry.stop);
  const client = newClient();
  onTestFinished(() => client.close());
  const home = { ...bareEnvironment(), HOME: reader.home, ...registry.environment(reader.home) };
  const { PAYER_PRIVATE_KEY: _, ...withoutKey } = env;
  await client.connect(
    new StdioClientTransport({ command, args, cwd: reader.home, env: { ...home, ...withoutKey }, stderr: "ignore" }),
  );
  expect((await client.listTools()).tools).toHaveLength(12);
});

test.each(["action-verify", "action-certify"])("the workflow %s gives the action what it takes", async (id) => {
  const action = parse(await readFile(fileOf("packages/action/action.yml"), "utf8"));
  const { jobs } = parse(block(id).text);
  const [step] =
    Object.values<{ steps: readonly { uses: string; with: Record<string, string> }[] }>(jobs)[0]?.steps ?? [];
  expect(step?.uses).toBe("OWNER/agent-payment-trust-service/packages/action@v1");
  expect(block(id).text).toMatch(
    /# OWNER: the GitHub account .*# To vendor the action instead: copy packages\/action to /s,
  );
  expect(step?.with["base-url"]).toBe(service.url);
  expect(Object.keys(action.inputs)).toEqual(expect.arrayContaining(Object.keys(step?.with ?? {})));
});

test("all code on the page is run here", () => {
  expect([...blocks.keys()].sort()).toEqual([
    "action-certify",
    "action-verify",
    "express",
    "hono",
    "mcp",
    "next",
    "trust",
  ]);
});
