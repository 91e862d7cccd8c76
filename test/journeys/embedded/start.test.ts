import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import { deploymentTargets, hasShared } from "../../../scripts/embedded/deployments.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { correct } from "../../support/arbiter/correction.ts";
import { buyVerdict } from "../../support/arbiter/scene.ts";
import { holdToItsWord } from "../../support/openapi/answers.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const START = fileURLToPath(new URL("../../../scripts/start.ts", import.meta.url));
const EXPORT = fileURLToPath(new URL("../../../scripts/log-export.ts", import.meta.url));

interface Running {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** The exit code; null after a signal. */
  readonly ended: Promise<number | null>;
}

let environment: Record<string, string>;
const children: ChildProcess[] = [];

beforeAll(async () => {
  const [PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT] = await Promise.all(
    Array.from({ length: 4 }, async () => String(await freePort())),
  );
  const DATA_DIR = mkdtempSync(join(tmpdir(), "trust-start-"));
  environment = { DATA_DIR, PORT, BASE_RPC_PORT, BASE_SEPOLIA_RPC_PORT, POSTGRES_PORT } as Record<string, string>;
  holdToItsWord(`http://localhost:${PORT}`);
});

afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(environment.DATA_DIR ?? "", { recursive: true, force: true });
});

function start(more: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [START], {
    env: { ...process.env, ...environment, ...more },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += chunk));
  return { child, output: () => text, ended: new Promise((resolve) => child.once("exit", resolve)) };
}

async function untilReady({ child, output }: Running): Promise<string> {
  await expect
    .poll(() => /^ready /m.test(output()) || child.exitCode !== null, { timeout: 90_000, interval: 100 })
    .toBe(true);
  expect(output()).toMatch(new RegExp(`^ready http://localhost:${environment.PORT}$`, "m"));
  return output();
}

/** Processes of this data directory, no matter who started them. Only Linux shows them here. */
const processes = (): string[] =>
  readdirSync("/proc", { encoding: "utf8" }).filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(environment.DATA_DIR ?? "?");
    } catch {
      return false;
    }
  });

const haveSettlementBatch = (): Promise<boolean[]> => {
  const { BASE_RPC_PORT = "", BASE_SEPOLIA_RPC_PORT = "" } = environment;
  const targets = deploymentTargets({ base: BASE_RPC_PORT, baseSepolia: BASE_SEPOLIA_RPC_PORT });
  return Promise.all(targets.map((target) => hasShared(target, SETTLEMENT_BATCH)));
};

const get = async (url: string) =>
  JSON.parse(await (await fetch(url, { headers: { accept: "application/json" } })).text());

/** Buys a verdict and corrects it with the command beside the running service, which finds it by the same variables. */
async function correctOne(): Promise<void> {
  const url = `http://localhost:${environment.PORT}`;
  const conditions = { payload_text: "x", expected_sha256: "0".repeat(64) };
  const { answer } = await buyVerdict({ url }, devAccount(3), { category: "payload-hash", conditions });
  const { output, errors } = await correct(environment, String(answer.body.id), "--reason", "a trial");
  expect([output, errors]).toEqual([expect.stringMatching(/^refund [0-9a-f]{32}\nhttp/), ""]);
  expect(await get(output.split("\n")[1] ?? "")).toMatchObject({
    supersedes: { id: answer.body.id, reason: "a trial" },
  });
}

const exportLog = () =>
  promisify(execFile)(process.execPath, [EXPORT, join(environment.DATA_DIR ?? "", "exported")], {
    env: { ...bareEnvironment(), ...environment },
  });

/** Exports the log beside the running service, whose database and witness the command finds by the same variables. */
async function exportAll(): Promise<void> {
  const served = async () => (await fetch(`http://localhost:${environment.PORT}/log/checkpoint`)).text();
  await expect.poll(served, { timeout: 60_000 }).toMatch(WITNESSED);
  expect((await exportLog()).stdout).toMatch(/^localhost:\d+\/log has (\d+) entries, \1 of them new\n$/);
  const note = readFileSync(join(environment.DATA_DIR ?? "", "exported/log/checkpoint"), "utf8");
  expect(note).toMatch(WITNESSED);
}
const WITNESSED = /^\u2014 localhost\/witness /m;

describe("npm start", () => {
  let certificateUrl: string;
  let settlement: string;

  test("shows its addresses, a key to pay with, a warning and a certificate, then says that it is ready", async () => {
    const running = start();
    const banner = await untilReady(running);
    expect(banner).toContain("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    expect(banner).toMatch(/never sign here/i);
    certificateUrl = /http:\/\/localhost:\d+\/cert\/[0-9a-f]{16}/.exec(banner)?.[0] ?? "";
    const certificate = await get(certificateUrl);
    expect(certificate).toMatchObject({ verdict: "pass", product: "basic", fresh: true });
    settlement = certificate.settlement.transaction;
    expect(await get(`http://localhost:${environment.PORT}/status`)).toMatchObject({
      ok: true,
      indexer: { ready: true },
    });
    expect(await haveSettlementBatch()).toEqual([true, true]);
    await correctOne();
    await exportAll();
    running.child.kill("SIGTERM");
    expect(await running.ended).toBe(0);
    expect(processes()).toEqual([]);
    await expect(exportLog()).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Nothing is running in .* Run npm start first, .*or set DATABASE_URL/),
    });
  }, 120_000);

  test("continues with the same data: the certificates and the chain are as they were", async () => {
    const running = start();
    await untilReady(running);
    expect(await get(certificateUrl)).toMatchObject({ verdict: "pass", settlement: { transaction: settlement } });
    const body = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [settlement] };
    const rpc = await fetch(`http://127.0.0.1:${environment.BASE_RPC_PORT}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(await rpc.json()).toMatchObject({ result: { status: "0x1", transactionHash: settlement } });
    const second = start({ PORT: String(await freePort()), BASE_RPC_PORT: String(await freePort()) });
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain(environment.DATA_DIR);
    running.child.kill("SIGINT");
    expect(await running.ended).toBe(0);
    expect(processes()).toEqual([]);
  }, 120_000);

  test("names a port that is taken, and starts nothing", async () => {
    const holder = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => holder.once("listening", resolve));
    const { port } = holder.address() as { port: number };
    const running = start({ PORT: String(port), DATA_DIR: `${environment.DATA_DIR}/other` });
    expect(await running.ended).toBe(1);
    expect(running.output()).toContain(`Port ${port} is in use`);
    expect(running.output()).toContain("PORT=");
    holder.close();
  });
});
