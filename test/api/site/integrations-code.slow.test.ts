import { execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { codeOn, inShell, type PageCode, type Reader, save, serve } from "../../support/browser/page-code.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { newClient } from "../../support/packages/mcp.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { expectGate, type Send, SHOP, startGateScene } from "../../support/sellers/gate-scene.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { waitUntil } from "../../support/wait-until.ts";

// The code of the integrations page, taken from it and run as it stands.

const fileOf = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const scene = await startGateScene();
const { service } = scene;
const home = await folderForFile("integrations-code-");
const registry = await forFile(startRegistry());
const env = { FACILITATOR_URL: scene.facilitatorUrl, PAY_TO: SHOP };
const reader: Reader = { home, env: { ...env, ...registry.environment(home) } };
const { blocks, block } = await codeOn(`${service.url}/integrations`);

const withoutService = (code: PageCode): PageCode => ({
  ...code,
  text: code.text.replaceAll(service.url, scene.closedUrl),
});

test.each(["hono", "express"])("the shop on %s sells to verified agents only", async (id) => {
  await inShell(reader, block(`${id}-install`));
  const shopOf = async (code: PageCode): Promise<Send> => {
    const origin = await serve(reader, code);
    return (headers) => fetch(`${origin}/paid/haiku`, { method: "POST", headers });
  };
  await expectGate(scene, await shopOf(block(id)), await shopOf(withoutService(block(id))));
});

test("the shop on Next sells to verified agents only", { timeout: 420_000 }, async ({ skip }) => {
  const shop: Reader = { ...reader, home: await folderForFile("integrations-next-") };
  const installed = await withMachinesRegistry(shop.home, block("next-install")).then(
    () => true,
    () => false,
  );
  skip(!installed, "npm cannot install Next here");
  await save(shop, block("next"));
  const route = (path: string, code: PageCode) => save(shop, { ...code, caption: `app/${path}/route.js` });
  const changed = (from: string, to: string): PageCode => {
    expect(block("next").text).toContain(from);
    return { ...block("next"), text: block("next").text.replace(from, to) };
  };
  await route("without-service", withoutService(block("next")));
  await route("read", changed("export const POST", "export const GET"));
  await route("unmatched", changed("server, { accepts }", 'server, { "POST /elsewhere": { accepts } }'));
  await inShell(shop, { id: "build", caption: "", text: "node_modules/.bin/next build" });
  const origin = await nextShop(shop);
  const post =
    (path: string): Send =>
    (headers) =>
      fetch(`${origin}/${path}`, { method: "POST", headers });
  await expectGate(scene, post("paid/haiku"), post("without-service"));
  for (const method of ["GET", "HEAD"]) expect((await fetch(`${origin}/read`, { method })).status).toBe(402);
  expect((await post("unmatched")({})).status).toBe(500);
});

/** Next is no dependency of this project: it comes from the registry that this machine's npm is set up for. */
const withMachinesRegistry = (cwd: string, { text }: PageCode) =>
  promisify(execFile)("bash", ["-euc", text], { cwd, timeout: 180_000 });

async function nextShop({ home: cwd, env }: Reader): Promise<string> {
  const port = await freePort();
  const next = join(cwd, "node_modules/next/dist/bin/next");
  const args = [next, "start", "--hostname", "127.0.0.1", "--port", String(port)];
  const child = spawn(process.execPath, args, { cwd, env: { ...bareEnvironment(), ...env }, stdio: "ignore" });
  onTestFinished(() => void child.kill());
  const origin = `http://127.0.0.1:${port}`;
  const isUp = () =>
    fetch(origin).then(
      () => true,
      () => false,
    );
  expect(await waitUntil(isUp, 60_000)).toBe(true);
  return origin;
}

test("the configuration for MCP clients starts twelve tools, from this service", async () => {
  const { mcpServers } = JSON.parse(block("mcp").text);
  const { command, args, env } = mcpServers["agent-payment-trust"];
  expect(env).toEqual({ BASE_URL: service.url, PAYER_PRIVATE_KEY: "0x…" });
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
    "express-install",
    "hono",
    "hono-install",
    "mcp",
    "next",
    "next-install",
  ]);
});
