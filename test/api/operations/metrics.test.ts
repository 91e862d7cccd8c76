import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { buyVerdict } from "../../support/arbiter/scene.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { type HoldingNode, startHoldingNode } from "../../support/chain/nodes.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, SHARED_RELAYER, startApiProcess } from "../../support/service/api-process.ts";
import { freshDatabase, type TestDatabase } from "../../support/service/database.ts";

const PATIENT = { timeout: 20_000, interval: 50 };
const SAMPLE = /^([a-z_0-9]+(?:\{.*\})?) (\S+)$/;

let home: string;
let logFile: string;
let chain: TestChain;
let sepolia: TestChain;
let node: HoldingNode;
let database: TestDatabase;
let api: ApiProcess;
let port: number;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "trust-metrics-"));
  logFile = join(home, "api.log");
  [chain, sepolia] = await Promise.all([startTestChain(), startTestChain({ network: "eip155:84532" })]);
  [node, port, database] = [await startHoldingNode(chain), await freePort(), await freshDatabase()];
  await fundRelayer(chain);
  // Long enough for all payments of a test to join the forming batch.
  const env = { METRICS_PORT: String(port), LOG_LEVEL: "debug", BATCH_WAIT_MS: "1500" };
  const urls = { baseRpcUrl: node.url, baseSepoliaRpcUrl: sepolia.rpcUrl };
  api = await startApiProcess({ database, ...urls, env, logFile });
});
afterAll(async () => {
  await api?.kill();
  node?.stop();
  await Promise.all([chain?.stop(), sepolia?.stop()]);
  rmSync(home, { recursive: true, force: true });
});

const scrapeText = async (host = "127.0.0.1"): Promise<string> => {
  const answer = await fetch(`http://${host}:${port}/metrics`);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  return answer.text();
};
/** Returns every sample by its name and labels. */
const scrape = async (): Promise<ReadonlyMap<string, number>> =>
  new Map(
    (await scrapeText()).split("\n").flatMap((line) => {
      const [, series = "", value] = SAMPLE.exec(line) ?? [];
      return value === undefined ? [] : [[series, Number(value)] as const];
    }),
  );
const entered = (state: string) => `trust_payment_transitions_total{state="${state}",reason=""}`;
const requests = (labels: string) => `trust_http_request_duration_seconds_count{${labels}}`;

describe("A paid request", () => {
  const STATES = ["received", "settling", "settled", "fulfilled"].map(entered);

  test("A paid request is counted in payment states, settlement time, certificates, and requests", async () => {
    const before = await scrape();
    expect(STATES.map((name) => before.get(name))).toEqual([undefined, undefined, undefined, undefined]);
    expect((await post(`${api.url}/test/basic`, v2(await signPayment(await newPayer(chain))))).status).toBe(200);
    const after = await scrape();
    expect(STATES.map((name) => after.get(name))).toEqual([1, 1, 1, 1]);
    expect(after.get('trust_settlement_duration_seconds_count{network="base"}')).toBe(1);
    expect(after.get('trust_settlement_duration_seconds_sum{network="base"}')).toBeGreaterThan(0);
    expect(after.get('trust_certificates_total{product="basic",result="pass"}')).toBe(1);
    expect(after.get(requests('method="POST",route="/test/basic",status="2xx"'))).toBe(1);
    const open = ["received", "settling", "settled"].map((state) => after.get(`trust_payments{state="${state}"}`));
    expect(open).toEqual([0, 0, 0]);
  });

  test("A purchased verdict is counted", async () => {
    const conditions = { payload_text: "x", expected_sha256: "0".repeat(64) };
    const payer = await newPayer(chain);
    expect((await buyVerdict(api, payer, { category: "payload-hash", conditions })).answer.status).toBe(200);
    expect((await scrape()).get('trust_verdicts_total{category="payload-hash",outcome="refund"}')).toBe(1);
  });

  test("A payment that is not mined is counted as unmined and settling until it is mined", async () => {
    const unmined = `{role="facilitator",network="base",address="${SHARED_RELAYER.toLowerCase()}"}`;
    const waiting = async () => {
      const found = await scrape();
      const names = ["trust_sender_unmined", "trust_sender_oldest_unmined_seconds"].map((name) => `${name}${unmined}`);
      return [...names, 'trust_payments{state="settling"}'].map((name) => found.get(name));
    };
    const signed = await signPayment(await newPayer(chain));
    await chain.client.setAutomine(false);
    const answering = post(`${api.url}/test/basic`, v2(signed));
    await expect.poll(waiting, PATIENT).toEqual([1, expect.any(Number), 1]);
    await chain.client.setAutomine(true);
    await chain.mine();
    expect((await answering).status).toBe(200);
    await expect.poll(waiting, PATIENT).toEqual([0, 0, 0]);
  });

  test("Relayed payments are counted by lane with gas and fee, and a batch also with its size and wait", async () => {
    const payers = await Promise.all([1, 2, 3, 4].map(() => newPayer(chain)));
    const signed = await Promise.all(payers.map((payer) => signPayment(payer)));
    const before = await scrape();
    await chain.client.setAutomine(false);
    const pay = (one: (typeof signed)[number]) => post(`${api.url}/test/basic`, v2(one));
    const pending = async () => (await chain.client.getTxpoolStatus()).pending;
    const answers = signed.slice(0, 1).map(pay);
    await expect.poll(pending, PATIENT).toBe(1);
    answers.push(...signed.slice(1).map(pay));
    await expect.poll(pending, PATIENT).toBe(2);
    await chain.client.setAutomine(true);
    await chain.mine();
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    const after = await scrape();
    const grew = (name: string) => (after.get(name) ?? Number.NaN) - (before.get(name) ?? 0);
    const [alone, batch] = ["alone", "batch"].map((lane) => {
      const of = (name: string) => grew(`trust_relayed_${name}_total{network="base",lane="${lane}"}`);
      return { mined: of("payments"), failed: of("failed_payments"), gas: of("gas"), eth: of("fee_eth") };
    });
    expect(alone).toEqual({ mined: 1, failed: 0, gas: expect.any(Number), eth: expect.any(Number) });
    expect(batch).toMatchObject({ mined: 3, failed: 0 });
    expect((batch?.gas ?? 0) / 3).toBeLessThan(alone?.gas ?? 0);
    expect((batch?.eth ?? 0) / 3).toBeLessThan(alone?.eth ?? 0);
    const base = '{network="base"}';
    expect(["count", "sum"].map((what) => grew(`trust_batch_payments_${what}${base}`))).toEqual([1, 3]);
    expect(grew(`trust_batch_wait_seconds_sum${base}`)).toBeGreaterThan(1);
    expect(after.get(`trust_batch_skipped_payments_total${base}`)).toBe(0);
    expect(after.get(`trust_batching_on${base}`)).toBe(1);
  });
});

test("Chains, senders, jobs, and the process have metrics, and an unknown value has no sample", async () => {
  const sender = `{role="facilitator",network="base",address="${SHARED_RELAYER.toLowerCase()}"}`;
  await expect.poll(async () => (await scrape()).has(`trust_sender_balance_eth${sender}`), PATIENT).toBe(true);
  const found = await scrape();
  expect(found.get(`trust_sender_balance_eth${sender}`)).toBeGreaterThan(99);
  expect(found.get("trust_observation_age_seconds")).toBeLessThan(20);
  expect(found.get('trust_part_ok{part="usdc"}')).toBe(1);
  const { senders } = (await send(`${api.url}/status`)).body as { senders: readonly { cost_wei: string }[] };
  const cost = found.get(`trust_sender_cost_eth${sender}`) ?? Number.NaN;
  expect(cost / (Number(senders[0]?.cost_wei) / 1e18)).toBeCloseTo(1, 1);
  expect(found.get('trust_part_ok{part="chain base"}')).toBe(1);
  expect(found.get('trust_chain_lag_seconds{network="base"}')).toBeLessThan(120);
  for (const job of ["resolve", "escrow", "relay facilitator base"])
    expect(found.get(`trust_job_runs_total{job="${job}"}`)).toBeGreaterThan(0);
  for (const name of [
    "nodejs_eventloop_lag_p99_seconds",
    "process_cpu_user_seconds_total",
    "nodejs_heap_size_used_bytes",
  ])
    expect(found.has(name), name).toBe(true);
  // This stage has no index, so its lag is unknown.
  expect([found.has("trust_index_lag_seconds"), found.get('trust_part_ok{part="indexer"}')]).toEqual([false, 0]);
});

test("Labels are route patterns without client input, and more paths and methods add no series", async () => {
  const junk = () => randomBytes(8).toString("hex");
  const visit = async () => {
    const sent = Array.from({ length: 20 }, junk);
    for (const id of sent) {
      for (const path of [`/cert/${id}`, `/${id}`, `/verify?wallet=${id}`, `/arbiter/verdict/${id}?${id}`])
        await (await fetch(`${api.url}${path}`, { headers: { "x-forwarded-for": id } })).text();
      await (await fetch(`${api.url}/cert/${id}`, { method: "PROPFIND" })).text();
    }
    return sent;
  };
  await visit();
  const first = await scrape();
  const sent = await visit();
  const text = await scrapeText();
  const second = await scrape();
  const ofRequests = (found: typeof first) => [...found.keys()].filter((name) => name.startsWith("trust_http_")).sort();
  expect(ofRequests(second)).toEqual(ofRequests(first));
  expect(second.size).toBeLessThan(1_500);
  for (const id of sent) expect(text).not.toContain(id);
  const by = (labels: string) => second.get(requests(labels));
  expect(by('method="GET",route="/cert/:id",status="4xx"')).toBe(40);
  expect(by('method="GET",route="none",status="4xx"')).toBe(40);
  expect(by('method="other",route="/cert/:id",status="4xx"')).toBe(40);
});

test("The metrics and the log contain no signature, payment header, or key", async () => {
  await chain.setBalance(SHARED_RELAYER, 0n);
  const signed = await signPayment(await newPayer(chain));
  const headers = v2(signed);
  const refused = await post(`${api.url}/test/basic`, headers);
  await fundRelayer(chain);
  expectProblem(refused, 503, "payment_pending");
  const settled = await post(`${api.url}/test/basic`, headers);
  expect(settled.status).toBe(200);
  const lastLine = `"request_id":"${settled.headers.get("x-request-id")}","msg":"request"`;
  // Request lines are written once per second.
  await expect.poll(() => readFileSync(logFile, "utf8"), PATIENT).toContain(lastLine);
  const log = readFileSync(logFile, "utf8");
  const places = [await scrapeText(), log].map((text) => text.toLowerCase());
  const digits = signed.signature.slice(2);
  const secrets = [digits.slice(0, 64), digits.slice(64, 128), "6f".repeat(32), ...Object.values(headers)];
  for (const place of places) for (const secret of secrets) expect(place).not.toContain(secret.toLowerCase());

  // Nested log lines carry the id of their request.
  const id = refused.headers.get("x-request-id");
  const lines = log.split("\n").filter((line) => line.includes(`"request_id":"${id}"`));
  expect(lines.some((line) => line.includes("has no gas"))).toBe(true);
}, 40_000);

test("Metrics are served only on their own port and on the loopback interface", async () => {
  expectProblem(await send(`${api.url}/metrics`), 404, "not_found");
  expect((await fetch(`http://127.0.0.1:${port}/status`)).status).toBe(404);
  const outside = Object.values(networkInterfaces())
    .flat()
    .filter((address) => address?.family === "IPv4" && !address.internal);
  for (const { address } of outside as { address: string }[])
    await expect(scrapeText(address)).rejects.toThrow("fetch failed");
});

test("A scrape does not wait for an unreachable node and reports it within seconds", async () => {
  node.stop();
  const began = performance.now();
  await scrape();
  expect(performance.now() - began).toBeLessThan(1_000);
  await expect.poll(async () => (await scrape()).get('trust_part_ok{part="chain base"}'), PATIENT).toBe(0);
  const found = await scrape();
  const parts = ["database", "chain base", "chain base-sepolia", "facilitator base"];
  expect(parts.map((part) => found.get(`trust_part_ok{part="${part}"}`))).toEqual([1, 0, 1, 0]);
  expect([found.get("trust_ok"), found.has('trust_chain_lag_seconds{network="base"}')]).toEqual([0, false]);
});

test("A scrape reports an unreachable database within seconds and keeps the counters", async () => {
  const before = await scrape();
  const url = new URL(database.ownerUrl);
  const name = url.pathname.slice(1);
  url.pathname = "/postgres";
  await withClient(url.href, async (owner) => {
    await owner.query(`alter database ${name} allow_connections false`);
    await owner.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
  });
  const began = performance.now();
  const found = await scrape();
  expect(performance.now() - began).toBeLessThan(5_000);
  expect([found.get("trust_ok"), found.get('trust_part_ok{part="database"}')]).toEqual([0, 0]);
  // The backlog is unknown now, so it has no sample instead of 0.
  const waiting = 'trust_payments{state="settling"}';
  expect([before.has(waiting), found.has(waiting)]).toEqual([true, false]);
  expect(before.get(entered("fulfilled"))).toBeGreaterThan(0);
  expect(found.get(entered("fulfilled"))).toBe(before.get(entered("fulfilled")));
});
