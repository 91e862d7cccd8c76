import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { anvilClient } from "../../../scripts/embedded/anvil.ts";
import { createInstallation, type Run } from "../../support/service/npm-start.ts";

vi.setConfig({ testTimeout: 240_000 });

const { env, url, start, processes, remove } = await createInstallation();
afterAll(remove);

const DELETED = /The last run did not stop cleanly\. Deleting its local chains, database, and keys/;
const chain = anvilClient(`http://127.0.0.1:${env.BASE_RPC_PORT}`, NETWORKS["eip155:8453"]);
const statusOf = async (address: string) => (await fetch(address, { headers: { accept: "application/json" } })).status;
const firstBlock = async () => (await chain.getBlock({ blockNumber: 1n })).hash;
const keys = () => readFileSync(join(env.DATA_DIR, "keys.json"), "utf8");
const certificateIn = (output: string) => /http:\/\/localhost:\d+\/cert\/[0-9a-f]{16}/.exec(output)?.[0] ?? "none";
const noneLeft = () => expect.poll(() => processes(), { timeout: 20_000 }).toEqual([]);

function killOne(of: string): void {
  const [pid] = processes(of);
  expect(pid, `no process of ${of}`).toBeDefined();
  process.kill(pid as number, "SIGKILL");
}

/** Expects a start after an unclean stop to have new data only, and everything to work. */
async function expectNew(run: Run, earlier: { readonly certificate: string; readonly keys: string }) {
  const output = await run.ready();
  expect(output).toMatch(DELETED);
  expect(await statusOf(earlier.certificate)).toBe(404);
  expect(keys()).not.toBe(earlier.keys);
  const certificate = certificateIn(output);
  expect(await statusOf(certificate)).toBe(200);
  return { certificate, keys: keys() };
}

let left: Run | null = null;
/** Returns the run that an earlier test left, or a new one. It is then no longer left to later tests. */
function takeRun(): Run {
  const run = left ?? start();
  left = null;
  return run;
}

test("A stop during a first start leaves nothing running, and the next start works", async () => {
  const stopped = start();
  await expect.poll(stopped.output, { timeout: 60_000 }).toContain("PostgreSQL is up");
  stopped.child.kill("SIGINT");
  expect(await stopped.ended).toBe(0);
  expect(processes()).toEqual([]);
  left = start();
  expect(await left.ready()).toMatch(DELETED);
});

test("After kill -9 of npm start or of a process with its data, nothing is left running, and the next start has new chains, data, and keys", async () => {
  const first = takeRun();
  const before = { certificate: certificateIn(await first.ready()), keys: keys() };
  const block = await firstBlock();
  first.child.kill("SIGKILL");
  await first.ended;
  await noneLeft();

  const second = start();
  const between = await expectNew(second, before);
  expect(await firstBlock()).not.toBe(block);
  killOne("/anvil");
  expect(await second.ended).toBe(1);
  expect(second.output()).toMatch(/The local chain base(-sepolia)? exited \(SIGKILL\)/);
  await noneLeft();

  left = start();
  await expectNew(left, between);
});

test("After kill -9, the API and the indexer restart with their data", async () => {
  const run = takeRun();
  const certificate = certificateIn(await run.ready());
  for (const program of ["api/main.ts", "scripts/indexer.ts"]) {
    const [before] = processes(program);
    killOne(program);
    await expect
      .poll(() => processes(program)[0], { timeout: 20_000 })
      .toSatisfy((pid) => pid !== undefined && pid !== before);
  }
  const isOk = async () => {
    const response = await fetch(`${url}/status`, { headers: { accept: "application/json" } });
    return ((await response.json()) as { ok: boolean }).ok;
  };
  await expect.poll(() => isOk().catch(() => false), { timeout: 60_000 }).toBe(true);
  expect(await statusOf(certificate)).toBe(200);
  run.child.kill("SIGINT");
  expect(await run.ended).toBe(0);
  await noneLeft();
});
