import { execFile, spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { decodePaymentRequiredHeader } from "@x402/core/http";
import { getAddress, type Hex } from "viem";
import type { HDAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { codeOn, inShell, type PageCode, type Reader, save, serve } from "../../support/browser/page-code.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { linkOwn } from "../../support/escrow/package.ts";
import { folderForFile } from "../../support/folder.ts";
import { forFile } from "../../support/for-file.ts";
import { newClient } from "../../support/packages/mcp.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { v1, v2 } from "../../support/payments/requests.ts";
import { signPayment } from "../../support/payments/signing.ts";
import { serveFacilitator } from "../../support/seller/stock-facilitator.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";
import { STOCK_CLIENTS, type StockClient } from "../../support/sessions/agents.ts";

// The code of the integrations page, taken from it and run as it stands.

const fileOf = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const [VERIFIED, UNKNOWN, FAILED] = [devAccount(1), devAccount(2), devAccount(3)];

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const facilitator = await forFile(serveFacilitator(chain));
await STOCK_CLIENTS[0]?.post(`${service.url}/test/basic`, VERIFIED);
await failScam(FAILED);
const SHOP = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const home = await folderForFile("integrations-code-");
const reader: Reader = { home, env: { FACILITATOR_URL: facilitator.url, PAY_TO: SHOP } };
const { blocks, block } = await codeOn(`${service.url}/integrations`);
for (const name of ["hono", "@hono/node-server", "@x402/core", "@x402/evm", "@x402/hono"]) await linkOwn(home, name);

/** A current PASS, and a current FAIL: the client that has no price limit signs the bait. */
async function failScam(account: HDAccount): Promise<void> {
  await STOCK_CLIENTS[0]?.post(`${service.url}/test/basic`, account);
  const client = STOCK_CLIENTS.find(({ name }) => name === "@x402/axios") as StockClient;
  const start = await client.post(`${service.url}/test/scam/start`, account);
  const { url } = start.body.next as { url: string };
  for (const _ of [1, 2]) await client.post(url, account).catch(() => null);
  const record = await (await fetch(`${service.url}/verify?wallet=${account.address}`)).json();
  expect(record).toMatchObject({ verified: false, capabilities: { can_pay: { tested: true } } });
}

const HAIKU = { haiku: "An old silent pond" };
const sign = (payer: HDAccount) => signPayment(payer, { to: SHOP.toLowerCase() as Hex, value: 10_000n });
const terms = { asset: getAddress(chain.network.usdc.address), amount: "10000", payTo: SHOP, maxTimeoutSeconds: 300 };
const version2 = async (payer: HDAccount) => v2(await sign(payer), { accepted: terms });
const headerOf = (headers: Record<string, string>) => headers["PAYMENT-SIGNATURE"] ?? "";
const changed = (headers: Record<string, string>, change: (json: string) => string) => ({
  "PAYMENT-SIGNATURE": Buffer.from(change(Buffer.from(headerOf(headers), "base64").toString())).toString("base64"),
});
const permit2 = async (payer: HDAccount, beside: object = {}) =>
  changed(await version2(payer), (json) => {
    const { payload, ...rest } = JSON.parse(json);
    return JSON.stringify({
      ...rest,
      payload: { permit2Authorization: { from: payer.address }, signature: payload.signature, ...beside },
    });
  });

/** What a buyer sends, by who it is. */
const FORMS: Readonly<Record<string, (payer: HDAccount) => Promise<Record<string, string>>>> = {
  "version 2": version2,
  "version 1": async (payer) => v1(await sign(payer)),
  "a byte-order mark": async (payer) => changed(await version2(payer), (json) => `\ufeff${json}`),
  "base64 that no JSON is in": async (payer) => changed(await version2(payer), (json) => json.slice(1)),
  Permit2: permit2,
  "a verified decoy beside Permit2": (payer) => permit2(payer, { authorization: { from: VERIFIED.address } }),
  "a list in place of an address": async (payer) =>
    changed(await version2(payer), (json) => json.replace(/"from":"(0x[^"]*)"/, '"from":["$1"]')),
};

type Send = (headers: Record<string, string>) => Promise<Response>;

const reasonOf = (answer: Response): string | undefined =>
  decodePaymentRequiredHeader(answer.headers.get("payment-required") ?? "").error;

/** Only a verified wallet is served; nobody else is charged, whatever the payment looks like. */
async function expectGuarded(send: Send): Promise<void> {
  const held = await chain.usdcBalance(SHOP);
  expect((await send({})).status).toBe(402);
  for (const [form, headers] of Object.entries(FORMS))
    for (const payer of [FAILED, UNKNOWN])
      expect([form, (await send(await headers(payer))).status]).toEqual([form, 402]);
  for (const payer of [FAILED, UNKNOWN])
    for (const form of ["version 2", "Permit2"]) {
      const answer = await send(await (FORMS[form] as (payer: HDAccount) => Promise<Record<string, string>>)(payer));
      expect(reasonOf(answer)).toMatch(/no current certificate.*\/inspect.*Nothing was charged/);
    }
  expect(await chain.usdcBalance(SHOP)).toBe(held);
  const served = await send(await version2(VERIFIED));
  expect([served.status, await served.json()]).toEqual([200, HAIKU]);
  expect(await chain.usdcBalance(SHOP)).toBe(held + 10_000n);
}

/** The same shop with a service that does not answer. */
async function expectClosed(send: Send): Promise<void> {
  const answer = await send(await version2(VERIFIED));
  expect([answer.status, reasonOf(answer)]).toEqual([402, expect.stringContaining("could not be looked up")]);
}

const server = (id: string) => async () => {
  const [open, shut] = [await shopOf(id, block("trust")), await shopOf(id, withoutService(block("trust")))];
  await expectGuarded(open);
  await expectClosed(shut);
};

const withoutService = (code: PageCode): PageCode => ({
  ...code,
  text: code.text.replace(service.url, "http://127.0.0.1:1"),
});

async function shopOf(id: string, trust: PageCode): Promise<Send> {
  await save(reader, trust);
  const origin = await serve(reader, block(id));
  return (headers) => fetch(`${origin}/paid/haiku`, { method: "POST", headers });
}

test("the hook on the Hono server serves verified agents only", { timeout: 120_000 }, server("hono"));

test("the hook on the Express server serves verified agents only", { timeout: 120_000 }, async () => {
  for (const name of ["express", "@x402/express"]) await linkOwn(home, name);
  await server("express")();
});

test("the hook on a Next route serves verified agents only", { timeout: 420_000 }, async ({ skip }) => {
  const shop: Reader = { ...reader, home: await folderForFile("integrations-next-") };
  await writeFile(join(shop.home, "package.json"), JSON.stringify({ private: true, dependencies: NEXT }));
  skip(!(await isInstalled(shop.home)), "npm cannot install Next here");
  await save(shop, { ...block("trust"), caption: "app/paid/haiku/trust.mjs" });
  await save(shop, block("next"));
  await inShell(shop, { id: "build", caption: "", text: "node_modules/.bin/next build" });
  await expectGuarded(await nextShop(shop));
});

/** With the registry that this machine's npm is set up for. */
const isInstalled = (cwd: string): Promise<boolean> =>
  promisify(execFile)("npm", ["install", "--no-audit", "--no-fund"], { cwd, timeout: 180_000 }).then(
    () => true,
    () => false,
  );

const NEXT = { next: "16.4.6", react: "19.2.4", "react-dom": "19.2.4", "@x402/next": "2.25.0", "@x402/evm": "2.25.0" };

async function nextShop({ home: cwd, env }: Reader): Promise<Send> {
  const port = await freePort();
  const next = join(cwd, "node_modules/next/dist/bin/next");
  const args = [next, "start", "--hostname", "127.0.0.1", "--port", String(port)];
  const child = spawn(process.execPath, args, { cwd, env: { ...bareEnvironment(), ...env }, stdio: "ignore" });
  onTestFinished(() => void child.kill());
  const send: Send = (headers) => fetch(`http://127.0.0.1:${port}/paid/haiku`, { method: "POST", headers });
  const isUp = () =>
    send({}).then(
      () => true,
      () => false,
    );
  expect(await waitUntil(isUp, 60_000)).toBe(true);
  return send;
}

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
