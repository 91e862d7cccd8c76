import { execFile, execFileSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startGuarded } from "../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { createDatabase } from "../support/service/database.ts";
import { ARBITER_KEY, PAY_TO } from "../support/service/environment.ts";
import { waitUntil } from "../support/wait-until.ts";

const run = promisify(execFile);
const NOT_ROOT = process.getuid?.() === 0 ? { user: { uid: 65_532, gid: 65_532 } } : {};
/** An unreachable registry, because a program in production installs nothing. */
const NO_REGISTRY = { npm_config_registry: "http://127.0.0.1:1" };

/** The committed files with the packages of `npm ci --omit=dev`, as a read-only tree. */
async function installForProduction(): Promise<string> {
  const root = await folderForFile("trust-production-");
  execFileSync("sh", ["-c", `git ls-files -z | xargs -0 cp -P --parents -t "${root}"`]);
  await run("npm", ["ci", "--omit=dev", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: root });
  execFileSync("chmod", ["-R", "a-w,a+rX", root]);
  chmodSync(root, 0o555);
  return root;
}

test("Without development packages, on a read-only tree, and as an unprivileged user, every program starts", async () => {
  const root = await installForProduction();
  const base = { PATH: `${join(root, "node_modules/.bin")}:/usr/bin:/bin`, HOME: "/nonexistent", ...NO_REGISTRY };
  const start = async (script: string, env: Readonly<Record<string, string>>) =>
    forFile(startGuarded({ command: "npm", args: ["run", script], cwd: root, env: { ...base, ...env }, ...NOT_ROOT }));
  const prints = async (program: Awaited<ReturnType<typeof start>>, text: string) => {
    await waitUntil(() => program.lastOutput().includes(text) || !program.running(), 60_000);
    expect(program.lastOutput()).toContain(text);
  };

  const database = await createDatabase();
  const migrating = await start("migrate", { DATABASE_URL: database.ownerUrl });
  expect(await migrating.ended, migrating.lastOutput()).toBe(0);

  const chain = await forFile(startTestChain());
  const shared = { BASE_RPC_URL: chain.rpcUrl, PAY_TO_ADDRESS: PAY_TO };
  const indexer = await start("indexer", {
    ...shared,
    DATABASE_URL: database.indexerUrl,
    START_BLOCK: "0",
    POLL_MS: "250",
  });
  const testChain = await forFile(startTestChain({ network: "eip155:84532" }));
  const key = (byte: number) => Buffer.alloc(32, byte).toString("base64url");
  const port = String(await freePort());
  const api = await start("api", {
    ...shared,
    DATABASE_URL: database.apiUrl,
    BASE_SEPOLIA_RPC_URL: testChain.rpcUrl,
    FACILITATOR_PRIVATE_KEY: `0x${"6f".repeat(32)}`,
    ARBITER_PRIVATE_KEY: ARBITER_KEY,
    SIGNING_KEY: key(1),
    SEALING_KEY: key(2),
    DECOY_SEED: key(3),
    HOST: "localhost",
    PORT: port,
    BASE_URL: `http://localhost:${port}`,
  });
  await prints(api, '"msg":"listening"');
  expect((await fetch(`http://localhost:${port}/cert/0000000000000000.json`)).status).toBe(404);
  await prints(indexer, '"msg":"index ready"');

  // The others name a missing setting, which shows that all of their imports are present.
  for (const [script, lacking] of [
    ["index:fetch", "Usage: npm run index:fetch"],
    ["index:preload", "Usage: npm run index:preload"],
    ["index:drop", "DATABASE_URL is missing"],
    ["reconcile", "Nothing is running in"],
    ["witness", "WITNESS_NAME is missing"],
    ["keys", "Usage: npm run keys"],
    ["doctor", "FAIL environment: DATABASE_URL is missing"],
    ["smoke", "Usage: npm run smoke"],
    ["installation:change", "Usage: npm run installation:change"],
    ["arbiter:correct", "Usage: npm run arbiter:correct"],
    ["exam:correct", "Usage: npm run exam:correct"],
  ] as const)
    await prints(await start(script, {}), lacking);
}, 300_000);
