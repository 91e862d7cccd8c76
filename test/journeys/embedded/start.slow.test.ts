import { createServer } from "node:net";
import { keccak256 } from "viem";
import { afterAll, describe, expect, test } from "vitest";
import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import { anvilClient } from "../../../scripts/embedded/anvil.ts";
import { deploymentTargets } from "../../../scripts/embedded/deployments.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { buyVerdict } from "../../support/arbiter/scene.ts";
import { correct } from "../../support/arbiter/verdicts.ts";
import { createInstallation } from "../../support/service/npm-start.ts";

const { env, url, start, processes, remove } = await createInstallation();
afterAll(remove);

/** The hash of the settlement batch's code on each chain. */
const settlementBatches = (): Promise<string[]> => {
  const targets = deploymentTargets({ base: env.BASE_RPC_PORT, baseSepolia: env.BASE_SEPOLIA_RPC_PORT });
  const { address } = SETTLEMENT_BATCH;
  return Promise.all(
    targets.map(async ({ rpcUrl, network }) =>
      keccak256((await anvilClient(rpcUrl, network).getCode({ address })) ?? "0x"),
    ),
  );
};

const get = async (url: string) =>
  JSON.parse(await (await fetch(url, { headers: { accept: "application/json" } })).text());

/** Buys a verdict and corrects it with the command next to the running service, through the same variables. */
async function correctOne(): Promise<void> {
  const conditions = { payload_text: "x", expected_sha256: "0".repeat(64) };
  const { answer } = await buyVerdict({ url }, devAccount(3), { category: "payload-hash", conditions });
  const { output, errors } = await correct(env, String(answer.body.id), "--reason", "a trial");
  expect([output, errors]).toEqual([expect.stringMatching(/^refund [0-9a-f]{32}\nhttp/), ""]);
  expect(await get(output.split("\n")[1] ?? "")).toMatchObject({
    supersedes: { id: answer.body.id, reason: "a trial" },
  });
}

/** Expects the log's checkpoint to have the cosignature of the witness that the command starts. */
async function expectWitnessed(): Promise<void> {
  const served = async () => (await fetch(`${url}/log/checkpoint`)).text();
  await expect.poll(served, { timeout: 60_000 }).toMatch(WITNESSED);
}
const WITNESSED = /^\u2014 localhost\/witness /m;

describe("npm start", () => {
  let certificateUrl: string;
  let settlement: string;

  test("npm start prints its addresses, a key to pay with, a warning, and a certificate before it is ready", async () => {
    const running = start();
    const banner = await running.ready();
    expect(banner).toContain("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    expect(banner).toMatch(/never sign here/i);
    certificateUrl = /http:\/\/localhost:\d+\/cert\/[0-9a-f]{16}/.exec(banner)?.[0] ?? "";
    const certificate = await get(certificateUrl);
    expect(certificate).toMatchObject({ verdict: "pass", product: "basic", fresh: true });
    settlement = certificate.settlement.transaction;
    expect(await get(`${url}/status`)).toMatchObject({
      ok: true,
      indexer: { ready: true },
    });
    expect(await settlementBatches()).toEqual([SETTLEMENT_BATCH.codeHash, SETTLEMENT_BATCH.codeHash]);
    await correctOne();
    await expectWitnessed();
    expect(processes().length).toBeGreaterThan(6);
    running.child.kill("SIGTERM");
    expect(await running.ended).toBe(0);
    expect(processes()).toEqual([]);
  }, 120_000);

  test("A second start continues with the same certificates and chain", async () => {
    const running = start();
    await running.ready();
    expect(await get(certificateUrl)).toMatchObject({ verdict: "pass", settlement: { transaction: settlement } });
    const body = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [settlement] };
    const rpc = await fetch(`http://127.0.0.1:${env.BASE_RPC_PORT}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(await rpc.json()).toMatchObject({ result: { status: "0x1", transactionHash: settlement } });
    const second = start({ PORT: String(await freePort()), BASE_RPC_PORT: String(await freePort()) });
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain(env.DATA_DIR);
    running.child.kill("SIGINT");
    expect(await running.ended).toBe(0);
    expect(processes()).toEqual([]);
  }, 120_000);

  test("A port that is in use is named, and nothing starts", async () => {
    const holder = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => holder.once("listening", resolve));
    const { port } = holder.address() as { port: number };
    const running = start({ PORT: String(port), DATA_DIR: `${env.DATA_DIR}/other` });
    expect(await running.ended).toBe(1);
    expect(running.output()).toContain(`Port ${port} is in use`);
    expect(running.output()).toContain("PORT=");
    holder.close();
  });
});
