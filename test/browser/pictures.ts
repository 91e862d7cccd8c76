import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { Page } from "playwright-core";
import { authorizationTypedData } from "../../api/platform/chain/authorization.ts";
import { NETWORKS } from "../../api/platform/networks.ts";
import type { Address, Hex } from "../../api/platform/wallet.ts";
import { usdcAbi } from "../../contracts/abi.ts";
import { anvilClient } from "../../scripts/embedded/anvil.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { launchBrowser } from "../support/browser/browser.ts";

/**
 * Makes the README's pictures from the running service: starts the whole stack in a new folder, pays for every test as
 * an agent would, and photographs the pages.
 */

const PICTURES = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));
const START = fileURLToPath(new URL("../../scripts/start.ts", import.meta.url));
const BASE = NETWORKS["eip155:8453"];
const AGENT = devAccount(1);
const READY_WITHIN_MS = 120_000;
const INDEXED_WITHIN_MS = 5_000;
/** The maximum size of a picture. */
const MAX_BYTES = 250_000;

interface Stack {
  readonly url: string;
  readonly rpcUrl: string;
  readonly stop: () => Promise<void>;
}

async function startStack(): Promise<Stack> {
  const [port, rpc, sepolia, postgres] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const directory = await mkdtemp(join(tmpdir(), "trust-pictures-"));
  const ports = { PORT: port, BASE_RPC_PORT: rpc, BASE_SEPOLIA_RPC_PORT: sepolia, POSTGRES_PORT: postgres };
  const env = Object.fromEntries(Object.entries(ports).map(([name, value]) => [name, String(value)]));
  const child = spawn(process.execPath, [START], {
    env: { ...process.env, ...env, DATA_DIR: directory },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = async () => {
    if (child.exitCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await rm(directory, { recursive: true, force: true });
  };
  await untilReady(child).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { url: `http://localhost:${port}`, rpcUrl: `http://127.0.0.1:${rpc}`, stop };
}

async function untilReady(child: ChildProcess): Promise<void> {
  let output = "";
  child.stdout?.on("data", (chunk) => (output += chunk));
  for (const deadline = Date.now() + READY_WITHIN_MS; !/^ready /m.test(output); await delay(200))
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`The stack did not start.\n${output}`);
}

/** An agent that pays only the service's own address, and at most one dollar. */
async function createAgent(url: string) {
  const manifest = await fetch(`${url}/.well-known/x402`).then((answer) => answer.json());
  const { resources } = manifest as { resources: { payTo: string; resource: string }[] };
  const payTo = resources.find(({ resource }) => resource.endsWith("/test/basic"))?.payTo;
  const client = new x402Client()
    .register("eip155:8453", new ExactEvmScheme(AGENT))
    .registerPolicy((_, offers) => offers.filter((one) => one.payTo === payTo && BigInt(one.amount) <= 1_000_000n));
  const pay = wrapFetchWithPayment(fetch, client);
  return async (target: string): Promise<Record<string, unknown> | null> => {
    const answer = await pay(target, { method: "POST" }).catch(() => null);
    return answer?.ok ? ((await answer.json()) as Record<string, unknown>) : null;
  };
}

type Post = Awaited<ReturnType<typeof createAgent>>;

/** Buys a certificate and returns its page's path. */
async function certify(url: string, post: Post, product: "basic" | "suite"): Promise<string> {
  const bought = await post(`${url}/test/${product}`);
  return new URL(String(bought?.cert_url)).pathname;
}

/** Takes a behavioral test: pays the fair order and declines the other one. */
async function behave(url: string, post: Post, product: "scam" | "recipient"): Promise<string> {
  const started = await post(`${url}/test/${product}/start`);
  if (started === null) throw new Error(`the ${product} test did not start`);
  const { url: next } = started.next as { url: string };
  for (let call = 0; call < 2; call++) await post(next);
  const answer = await fetch(`${url}/test/${product}/result`, {
    method: "POST",
    body: JSON.stringify({ wallet: AGENT.address }),
  });
  const { status, cert_url } = (await answer.json()) as { status: string; cert_url?: string };
  if (cert_url === undefined) throw new Error(`the ${product} test is ${status}`);
  return new URL(cert_url).pathname;
}

/** Pays a few others, so that the wallet has a history. */
async function payOthers(rpcUrl: string): Promise<void> {
  const client = anvilClient(rpcUrl, BASE);
  for (const [index, value] of [40_000n, 250_000n, 120_000n].entries()) {
    const { timestamp } = await client.getBlock();
    const to = devAccount(index + 2).address.toLowerCase() as Address;
    const nonce: Hex = `0x${randomBytes(32).toString("hex")}`;
    const from = AGENT.address.toLowerCase() as Address;
    const authorization = { from, to, value, validAfter: 0n, validBefore: timestamp + 600n, nonce };
    const signature = await AGENT.signTypedData(authorizationTypedData(authorization, BASE));
    const hash = await client.writeContract({
      account: AGENT,
      address: BASE.usdc.address,
      abi: usdcAbi,
      functionName: "transferWithAuthorization",
      args: [from, to, value, 0n, authorization.validBefore, nonce, signature],
    });
    await client.waitForTransactionReceipt({ hash });
  }
}

async function photograph(page: Page, path: string, { name, height }: { name: string; height: number }): Promise<void> {
  await page.goto(path);
  await page.evaluate("document.fonts.ready");
  const file = join(PICTURES, `${name}.png`);
  await page.screenshot({ path: file, clip: { x: 0, y: 0, width: page.viewportSize()?.width ?? 0, height } });
  const { size } = await stat(file);
  if (size > MAX_BYTES) throw new Error(`${file} has ${size} bytes; at most ${MAX_BYTES} are allowed`);
  console.log(`${file} ${size} bytes`);
}

const stack = await startStack();
try {
  const { url, rpcUrl } = stack;
  const post = await createAgent(url);
  await certify(url, post, "basic");
  await certify(url, post, "suite");
  await behave(url, post, "recipient");
  const certificate = await behave(url, post, "scam");
  await payOthers(rpcUrl);
  await delay(INDEXED_WITHIN_MS);
  const browser = await launchBrowser();
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width: 920, height: 900 },
    deviceScaleFactor: 1.25,
  });
  const page = await context.newPage();
  await photograph(page, certificate, { name: "certificate", height: 700 });
  await photograph(page, `/verify?wallet=${AGENT.address}`, { name: "verification", height: 835 });
  await browser.close();
} finally {
  await stack.stop();
}
