import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { generatePrivateKey } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { installedAsPrinted } from "../../support/browser/installed-as-printed.ts";
import { codeOn, type PageCode, type Reader, runAsPrinted, serveAsPrinted } from "../../support/browser/page-code.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { newClient } from "../../support/packages/mcp.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { pipEnvironment } from "../../support/packages/wheels.ts";
import {
  expectGate,
  FAILED,
  payment,
  type Send,
  SHOP,
  startGateScene,
  UNTESTED,
  VERIFIED,
} from "../../support/sellers/gate-scene.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

// Takes the code of the integrations page and runs it unchanged. The Next shop has its own test.

const fileOf = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const scene = await startGateScene();
const { service } = scene;
const home = await folderForFile("integrations-code-");
const registry = await forFile(startRegistry());
const env = { FACILITATOR_URL: scene.facilitatorUrl, PAY_TO: SHOP };
const reader: Reader = { home, env: { ...env, ...registry.environment(home) } };
const { blocks, block } = await codeOn(`${service.url}/integrations`);
const page = await (await fetch(`${service.url}/integrations`, { headers: { accept: "text/html" } })).text();

const withoutService = (code: PageCode): PageCode => ({
  ...code,
  text: code.text.replaceAll(service.url, scene.closedUrl),
});

const pip = await pipEnvironment();
const readyFor = installedAsPrinted({ ...reader.env, ...pip });

async function served(id: string, code: PageCode): Promise<string> {
  const { reader, commands } = await readyFor(block(`${id}-run`));
  return serveAsPrinted(reader, { code, commands, values: env });
}

test.each(["hono", "express"])("The %s shop sells only to verified agents", { timeout: 300_000 }, async (id) => {
  const shopOf = async (code: PageCode): Promise<Send> => {
    const origin = await served(id, code);
    return (headers) => fetch(`${origin}/paid/haiku`, { method: "POST", headers });
  };
  await expectGate(scene, await shopOf(block(id)), await shopOf(withoutService(block(id))));
});

test.skipIf(pip === null).each(["fastapi", "flask"])(
  "The %s shop sells only to verified agents",
  { timeout: 300_000 },
  async (id) => {
    const origin = await served(id, block(id));
    const post = async (headers: Record<string, string>) =>
      (await fetch(`${origin}/paid/haiku`, { method: "POST", headers })).status;
    expect(await post({})).toBe(402);
    expect(await post(await payment(VERIFIED))).toBe(200);
    expect(await post(await payment(FAILED))).toBe(403);
    expect(await post(await payment(UNTESTED))).toBe(403);
    const closed = await served(id, withoutService(block(id)));
    expect((await fetch(`${closed}/paid/haiku`, { method: "POST", headers: await payment(VERIFIED) })).status).toBe(
      503,
    );
  },
);

/** Packages outside this project's dependencies come from the registry that npm is configured with. */
const withMachinesRegistry = (cwd: string, { text }: PageCode) =>
  promisify(execFile)("bash", ["-euc", text], { cwd, timeout: 180_000 });

test.each(["mcp-config", "mcp-vscode"])(
  "The configuration %s starts a server with twelve tools that uses this service",
  async (id) => {
    const { mcpServers, servers = mcpServers } = JSON.parse(block(id).text);
    const { command, args, env } = servers["agent-payment-trust"];
    expect(env).toEqual({
      BASE_URL: service.url,
      PAYER_PRIVATE_KEY: expect.stringMatching(/^(0x…|\$\{input:payer\})$/),
    });
    const client = newClient();
    onTestFinished(() => client.close());
    const home = { ...bareEnvironment(), HOME: reader.home, ...registry.environment(reader.home) };
    const { PAYER_PRIVATE_KEY: _, ...withoutKey } = env;
    await client.connect(
      new StdioClientTransport({ command, args, cwd: reader.home, env: { ...home, ...withoutKey }, stderr: "ignore" }),
    );
    const { tools } = await client.listTools();
    expect(tools).toHaveLength(12);
    for (const { name } of tools) expect(page).toContain(`<code>${name}</code>`);
  },
);

const ALL_TOOLS = /verify_agent.*arbiter_verify/s;
const values = { PAYER_PRIVATE_KEY: generatePrivateKey() };

test("The AI SDK gets the tools", { timeout: 300_000 }, async ({ skip }) => {
  const home = await folderForFile("integrations-ai-sdk-");
  const { text } = block("agent-tools-run");
  const [install = ""] = text.split("\n");
  const installed = await withMachinesRegistry(home, { ...block("agent-tools-run"), text: install }).then(
    () => true,
    () => false,
  );
  skip(!installed, "npm cannot install the AI SDK here");
  const commands = { ...block("agent-tools-run"), text: text.slice(install.length + 1) };
  expect(await runAsPrinted({ ...reader, home }, { code: block("agent-tools"), commands, values })).toMatch(ALL_TOOLS);
});

test.skipIf(pip === null)("LangChain gets the tools", { timeout: 300_000 }, async () => {
  const { reader, commands } = await readyFor(block("agent-tools-py-run"));
  expect(await runAsPrinted(reader, { code: block("agent-tools-py"), commands, values })).toMatch(ALL_TOOLS);
});

test.each(["action-verify", "action-certify"])("The workflow %s passes only inputs that the action has", async (id) => {
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

test("All code on the page is run here or by the test of Next", () => {
  const programs = ["agent-tools", "agent-tools-py", "express", "fastapi", "flask", "hono", "next"];
  expect([...blocks.keys()].sort()).toEqual(
    [
      ...["action-certify", "action-verify", "mcp-config", "mcp-vscode"],
      ...programs.flatMap((id) => [id, `${id}-run`]),
    ].sort(),
  );
});
