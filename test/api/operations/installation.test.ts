import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { startApiProcess } from "../../support/service/api-process.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const chain = await forFile(startTestChain());
const COMMAND = fileURLToPath(new URL("../../../scripts/installation-change.ts", import.meta.url));
const OTHER_ADDRESS = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
const OTHER_KEY = Buffer.alloc(32, 9).toString("base64url");
const OTHER_ARBITER = `0x${"c9".repeat(32)}`;

/** Creates a database and returns a function that starts the service on it. */
async function installation() {
  const database = await freshDatabase();
  const plan = { database, baseRpcUrl: chain.rpcUrl, baseSepoliaRpcUrl: chain.rpcUrl };
  /** Returns the error that a start ends with, or null if the service starts. */
  const start = (env: Readonly<Record<string, string>> = {}): Promise<string | null> =>
    startApiProcess({ ...plan, env: { ...env, BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl } }).then(
      (api) => api.kill().then(() => null),
      (error: Error) => error.message.replace("The API did not start. ", ""),
    );
  return { database, start };
}

const sepolia = await forFile(startTestChain({ network: "eip155:84532" }));

describe("An installation's identity", () => {
  test("The first start claims the identity, and a start with another identity ends with one line", {
    timeout: 240_000,
  }, async () => {
    const { start } = await installation();
    expect(await start()).toBeNull();
    for (const [name, value] of [
      ["PAY_TO_ADDRESS", OTHER_ADDRESS],
      ["ARBITER_PRIVATE_KEY", OTHER_ARBITER],
      ["BASE_URL", "https://other.example"],
      ["SEALING_KEY", OTHER_KEY],
      ["DECOY_SEED", OTHER_KEY],
    ] as const) {
      const problem = await start({ [name]: value });
      expect(problem).toMatch(new RegExp(`^${name} (gives|is not) .*npm run installation:change`));
      expect(problem).not.toMatch(/\n|c9c9|CQkJ/);
    }
    expect(await start({ MAIN_NETWORK: "base-sepolia" })).toBe(
      "MAIN_NETWORK gives eip155:84532, but this database belongs to eip155:8453. Set it back, or use an empty database.",
    );
    expect(await start({ MAIN_NETWORK: "mainnet" })).toBe("MAIN_NETWORK is wrong: expected base or base-sepolia");
    expect(await start({ BASE_URL: "http://trust.localhost" })).toBeNull();
    expect(await start()).toBeNull();
  });

  test("Only one of two different processes that start together claims the identity", {
    timeout: 120_000,
  }, async () => {
    const { start } = await installation();
    const results = await Promise.all([start(), start({ PAY_TO_ADDRESS: OTHER_ADDRESS })]);
    expect(results.filter((problem) => problem === null)).toHaveLength(1);
    expect(results.find((problem) => problem !== null)).toMatch(/^PAY_TO_ADDRESS gives 0x/);
  });

  test("A command changes the identity and records the reason", { timeout: 120_000 }, async () => {
    const { database, start } = await installation();
    expect(await start()).toBeNull();
    const env = {
      ...bareEnvironment(),
      ...{ HOST: "localhost", DATABASE_URL: database.apiUrl, BASE_RPC_URL: chain.rpcUrl },
      ...{ BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl, FACILITATOR_URL: "http://127.0.0.1:1", PAY_TO_ADDRESS: OTHER_ADDRESS },
      ...{ SIGNING_KEY: Buffer.alloc(32, 1).toString("base64url"), ARBITER_PRIVATE_KEY: OTHER_ARBITER },
      ...{ SEALING_KEY: OTHER_KEY, DECOY_SEED: Buffer.alloc(32, 3).toString("base64url") },
    };
    const change = (...args: string[]) => promisify(execFile)(process.execPath, [COMMAND, ...args], { env });
    await expect(change()).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^Usage: /) });
    expect((await change("--reason", "the treasury moved")).stdout).toMatch(/recorded; restart/);
    expect((await change("--reason", "again")).stdout).toMatch(/No change to record/);

    const changed = { PAY_TO_ADDRESS: OTHER_ADDRESS, ARBITER_PRIVATE_KEY: OTHER_ARBITER, SEALING_KEY: OTHER_KEY };
    expect(await start(changed)).toBeNull();
    expect(await start()).toMatch(/^PAY_TO_ADDRESS gives /);
    const owner = await connectOwner(database);
    const { rows } = await owner.query("SELECT id, reason FROM installation ORDER BY id");
    expect(rows).toEqual([
      { id: 1, reason: null },
      { id: 2, reason: "the treasury moved" },
    ]);
    await expect(owner.query("DELETE FROM installation")).rejects.toThrow("append-only");
    await owner.end();
  });
});
