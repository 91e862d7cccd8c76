import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { expect, onTestFinished, test, vi } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { call, newClient } from "../../support/packages/mcp.ts";
import { linkOwn, packInto } from "../../support/packages/registry.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const NAME = "agent-payment-trust-mcp";
const DEPENDENCIES = ["@modelcontextprotocol", "@noble/hashes", "@x402", "canonicalize", "jose", "viem", "zod"];
const INSPECTOR = join(
  dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector-cli/package.json")),
  "build/cli.js",
);
const STRANGER = `0x${"ab".repeat(20)}`;
const CLAIM = { category: "payload-hash", conditions: { payload_text: "x", expected_sha256: "0".repeat(64) } };
const run = promisify(execFile);

/** A folder outside the project with the packed package as npm installs it, but with this project's dependencies. */

const home = await folderForFile("mcp-package-");
const installed = join(home, "node_modules", NAME);
const chain = await forFile(startTestChain());
const [service] = await Promise.all([forFile(startService({ chain })), install()]);

async function install(): Promise<void> {
  await packInto(home, "mcp");
  const [tarball = ""] = (await readdir(home)).filter((name) => name.endsWith(".tgz"));
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", join(home, tarball), "-C", installed, "--strip-components=1"]);
  for (const name of DEPENDENCIES) await linkOwn(home, name);
  const { bin } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  await chmod(join(installed, bin), 0o755);
  await mkdir(join(home, "node_modules/.bin"));
  await symlink(join("..", NAME, bin), join(home, "node_modules/.bin", NAME));
  await writeFile(join(home, "package.json"), '{"type":"module"}');
}

/** The official client over stdio, with the program started as npx starts it. */
async function connect(env: Readonly<Record<string, string>>): Promise<Client> {
  const client = newClient();
  onTestFinished(() => client.close());
  const environment = { ...bareEnvironment(), HOME: home, ...env };
  await client.connect(
    new StdioClientTransport({
      command: "npx",
      args: ["--no-install", NAME],
      cwd: home,
      env: environment,
      stderr: "ignore",
    }),
  );
  return client;
}

test("The tarball is JavaScript with the verifier compiled in", async () => {
  const files = (await readdir(installed, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const names = files.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["cli.js", "verify-document.js"]));
  expect(names.filter((name) => !/\.js$/.test(name)).sort()).toEqual(["LICENSE", "README.md", "package.json"]);
  const { dependencies } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const root = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const verifier = JSON.parse(await readFile(join(ROOT, "packages/verifier/package.json"), "utf8"));
  expect(dependencies).toMatchObject(verifier.dependencies);
  const versions = { ...root.devDependencies, ...root.dependencies, ...verifier.dependencies };
  for (const [name, version] of Object.entries(dependencies)) expect([name, version]).toEqual([name, versions[name]]);
});

test("Over stdio, npx serves twelve tools, a free one responds, and a paid one pays with the key from the environment", async () => {
  const key = generatePrivateKey();
  const payer = privateKeyToAddress(key);
  await chain.fund(payer, 1_000_000n);
  const client = await connect({ BASE_URL: service.url, PAYER_PRIVATE_KEY: key, SESSION_BUDGET_USD: "0.50" });
  expect((await client.listTools()).tools).toHaveLength(12);
  const { version } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(client.getServerVersion()).toMatchObject({ name: "agent-payment-trust", version });
  expect(await call(client, "check_credential", { wallet: payer })).toMatchObject({ structured: { valid: true } });
  expect((await call(client, "arbiter_verify", CLAIM)).structured).toMatchObject({
    status: "paid",
    budget: { limit_usd: "0.50", spent_usd: formatUsd(PRICES.verdict) },
    verdict: { verdict: "refund" },
  });
  expect((await call(client, "certify", { test: "basic" })).structured).toMatchObject({ status: "paid" });
  const over = await call(client, "certify", { test: "basic" });
  expect(over).toMatchObject({
    isError: true,
    text: expect.stringMatching(/0\.00 of the session's 0\.50 USDC budget is left/),
  });
  expect(await settlements(chain, payer)).toHaveLength(2);
});

const REFUSAL = Buffer.from(JSON.stringify({ x402Version: 2, error: "never submitted", accepts: [] })).toString(
  "base64",
);

/** The service behind a proxy on one origin that drops responses. */
async function startProxy() {
  const payments = new Set<string>();
  const state = { mode: "open" as "open" | "lose" | "refuse", paid: 0 };
  const proxy = await serveHttp(async (request, response) => {
    const payment = request.headers["payment-signature"];
    if (typeof payment === "string") {
      payments.add(payment);
      state.paid++;
      if (state.mode === "refuse") return void response.writeHead(402, { "payment-required": REFUSAL }).end("{}");
    }
    const answer = await fetch(`${service.url}${request.url}`, {
      method: request.method ?? "GET",
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        ...(typeof payment === "string" ? { "payment-signature": payment } : {}),
      },
      ...(request.method === "POST" ? { body: await text(request) } : {}),
    });
    const body = (await answer.text()).replaceAll(service.url, proxy.url);
    if (typeof payment === "string" && state.mode === "lose") return void request.socket.destroy();
    for (const name of ["payment-required", "payment-response", "content-type"])
      if (answer.headers.has(name)) response.setHeader(name, answer.headers.get(name) ?? "");
    response.writeHead(answer.status).end(body);
  }, "localhost");
  onTestFinished(() => proxy.stop());
  return { url: proxy.url, payments, state };
}

/** The program as a direct child process, so that it can be killed. */
async function startProgram(env: Readonly<Record<string, string>>) {
  const client = newClient();
  onTestFinished(() => client.close());
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(installed, "dist/mcp/src/cli.js")],
    cwd: home,
    env: { ...bareEnvironment(), HOME: home, ...env },
    stderr: "ignore",
  });
  await client.connect(transport);
  return { client, kill: () => process.kill(transport.pid ?? 0, "SIGKILL") };
}

const paid = async ({ state }: { readonly state: { readonly paid: number } }, times: number) =>
  vi.waitFor(() => expect(state.paid).toBeGreaterThanOrEqual(times), { timeout: 20_000 });

test("A program that is killed after it sends a payment sends the same one when it restarts, and is charged once", async () => {
  const key = generatePrivateKey();
  const payer = privateKeyToAddress(key);
  await chain.fund(payer, 1_000_000n);
  const proxy = await startProxy();
  const env = { BASE_URL: proxy.url, PAYER_PRIVATE_KEY: key, XDG_STATE_HOME: join(home, payer) };
  proxy.state.mode = "lose";
  for (const times of [1, 2]) {
    const { client, kill } = await startProgram(env);
    const lost = call(client, "certify", { test: "basic" }).catch(() => "killed");
    await paid(proxy, times);
    kill();
    expect(await lost).toBe("killed");
  }
  proxy.state.mode = "refuse";
  const refused = await startProgram(env);
  expect((await call(refused.client, "certify", { test: "basic" })).text).toMatch(/never submitted/);
  refused.kill();
  proxy.state.mode = "open";
  const { client } = await startProgram(env);
  const answer = await call(client, "certify", { test: "basic" });
  expect(answer.structured, answer.text).toMatchObject({ status: "paid", signed_at: expect.any(String) });
  expect([proxy.payments.size, (await settlements(chain, payer)).length]).toEqual([1, 1]);
  const folder = join(home, payer, NAME);
  // The file is complete, and it is not a lock.
  const kept = async () => {
    const file = (await readdir(folder)).find((name) => name.endsWith(".json"));
    return JSON.parse(await readFile(join(folder, file ?? ""), "utf8"));
  };
  await eventually(async () => "answeredAt" in (await kept()), true);
});

/** The output of the MCP inspector's command line. */
async function inspect(target: readonly string[], ...method: readonly string[]): Promise<unknown> {
  const environment = {
    ...bareEnvironment(),
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    ...{ HOME: home, BASE_URL: service.url },
  };
  const args = [INSPECTOR, "--cli", ...target, "--method", ...method];
  // The inspector looks for its own package.json from the working directory.
  return JSON.parse((await run(process.execPath, args, { cwd: dirname(INSPECTOR), env: environment })).stdout);
}

test.each([
  ["stdio", 12, () => [process.execPath, join(installed, "dist/mcp/src/cli.js")]],
  ["streamable HTTP at /mcp", 7, () => [`${service.url}/mcp`]],
] as const)("The MCP inspector lists the tools over %s (%i of them) and calls a free one", async (_, count, target) => {
  const { tools } = (await inspect(target(), "tools/list")) as { tools: readonly { name: string }[] };
  expect(tools).toHaveLength(count);
  const named = ["--tool-name", "verify_agent", "--tool-arg", `wallet=${STRANGER}`];
  const answer = (await inspect(target(), "tools/call", ...named)) as { content: readonly { text: string }[] };
  expect(JSON.parse(answer.content[0]?.text ?? "")).toMatchObject({ wallet: STRANGER, tested: false });
});

test("With an invalid environment it exits with 2 and one sentence, and --help lists the variables", async () => {
  const cli = (args: readonly string[], env: Readonly<Record<string, string>>) =>
    run(process.execPath, [join(installed, "dist/mcp/src/cli.js"), ...args], { cwd: home, env });
  await expect(cli([], {})).rejects.toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^BASE_URL must/),
  });
  await expect(cli(["serve"], {})).rejects.toMatchObject({ code: 2 });
  expect((await cli(["--help"], {})).stderr).toMatch(/SESSION_BUDGET_USD.*default 2\.00/);
});
