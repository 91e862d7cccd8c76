import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LogFacts } from "../../../api/log/index.ts";
import { logStatus } from "../../../api/operations/log-status.ts";
import { createObservations } from "../../../api/operations/observation-store.ts";
import type { ChainFacts } from "../../../api/operations/status.ts";
import { renderStatus } from "../../../api/operations/status-page.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { startFacilitator, type TestFacilitator } from "../../support/payments/facilitator.ts";
import { send } from "../../support/payments/requests.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { RELAYER, startService, type TestService, type TestServicePlan } from "../../support/service/service.ts";

const PATIENT = { timeout: 20_000, interval: 100 };

let chain: TestChain;
let facilitator: TestFacilitator;
const services: TestService[] = [];

beforeAll(async () => {
  chain = await startTestChain();
  facilitator = await startFacilitator(chain);
});
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  facilitator?.stop();
  await chain?.stop();
});

async function begin(plan: Partial<TestServicePlan> = {}): Promise<TestService> {
  const service = await startService({ chain, ...plan });
  services.push(service);
  return service;
}
const statusOf = async ({ url }: TestService) => (await send(`${url}/status`)).body;

test("/status shows the in-process facilitator's address and balance on both networks", async () => {
  const { senders, settlement } = await statusOf(await begin({ jobs: false }));
  const facilitator = { role: "facilitator", address: RELAYER.address, ok: true, unmined: 0 };
  expect(senders).toMatchObject([
    { ...facilitator, network: "eip155:8453", balance_wei: String(10n ** 20n), oldest_unmined_seconds: null },
    { ...facilitator, network: "eip155:84532" },
  ]);
  expect(settlement).toEqual({
    ok: true,
    mode: "in-process",
    address: RELAYER.address,
    balance_wei: String(10n ** 20n),
  });
});

test("A remote facilitator is ok while it responds", async () => {
  const config = { facilitator: { remote: facilitator.url } };
  expect(await statusOf(await begin({ jobs: false, config }))).toMatchObject({
    settlement: { ok: true, mode: "remote" },
    senders: [],
  });
  facilitator.stop();
  expect(await statusOf(await begin({ jobs: false, config }))).toMatchObject({
    ok: false,
    settlement: { ok: false, mode: "remote" },
  });
});

test("A repeatedly failing job is reported in the JSON and on the page until it succeeds", async () => {
  const service = await begin();
  const rename = (from: string, to: string) =>
    withClient(service.database.ownerUrl, (client) => client.query(`ALTER TABLE ${from} RENAME TO ${to}`));
  type Job = { name: string; ok: boolean; failures: number; last_success_at: string | null };
  const resolve = async () => ((await statusOf(service)).jobs as Job[]).find(({ name }) => name === "resolve");
  await expect.poll(resolve, PATIENT).toMatchObject({ ok: true, failures: 0, last_success_at: expect.any(String) });

  await rename("payment", "payment_away");
  await expect.poll(resolve, PATIENT).toMatchObject({ ok: false });
  const page = await (await fetch(`${service.url}/status`, { headers: { accept: "text/html" } })).text();
  expect(page).toMatch(
    /Some systems need attention.*Jobs<\/span> <span class="mark fail">.*resolve<\/dt><dd>Failing\./s,
  );
  await rename("payment_away", "payment");
  await expect.poll(resolve, PATIENT).toMatchObject({ ok: true });
}, 40_000);

test("The status page names the part that does not respond, and shows an unknown value as unknown", () => {
  const indexer = { ok: false, ready: false, block: null, lag_seconds: null, reason: "the index is not ready" };
  const page = renderStatus({ ...STATUS, ok: false, database: { ok: false }, indexer });
  expect(page).toContain("Some systems need attention");
  expect(page).toMatch(/Database<\/span> <span class="mark fail">.*Not responding/);
  expect(page).toContain("<dt>Block</dt><dd>unknown</dd>");
});

describe("The log's status", () => {
  const NOW = new Date("2026-11-24T12:10:00.000Z");
  const at = (secondsAgo: number) => ({ size: 9, at: new Date(NOW.getTime() - secondsAgo * 1_000) });
  const witness = {
    name: "w",
    size: 9,
    cosignedAt: at(0).at,
    error: { text: "no answer", at: at(0).at },
    danger: null,
  };
  const FACTS: LogFacts = {
    ...{ state: "integrating", problem: null, size: 9, quorum: 1, anchor: null },
    ...{ witnessed: at(600), witnesses: [witness] },
  };

  test.each<[string, Partial<LogFacts>, boolean]>([
    ["ok while a quorum of witnesses confirmed it within ten minutes", {}, true],
    ["not ok if the last confirmation is older", { witnessed: at(601) }, false],
    ["not ok if no quorum has confirmed it", { witnessed: null }, false],
    ["ok without a confirmation if none is required", { witnessed: null, quorum: 0 }, true],
    ["ok without a confirmation if it has no entries", { witnessed: null, size: 0 }, true],
    ["not ok if the service refuses to sign", { state: "refused" }, false],
    ["not ok if a witness reports another log", { witnesses: [{ ...witness, danger: "another log" }] }, false],
  ])("The log is %s", (_, change, ok) => expect(logStatus({ ...FACTS, ...change }, NOW)?.ok).toBe(ok));

  test("The log's times are in ISO 8601, and a witness's error is its text", () =>
    expect(
      logStatus({ ...FACTS, anchor: { ...at(60), state: "final", transaction: null, block: 7 } }, NOW),
    ).toMatchObject({
      ...{ witnessed_size: 9, witnessed_at: "2026-11-24T12:00:00.000Z", witnessed_age_seconds: 600 },
      witnesses: [{ cosigned_at: NOW.toISOString(), error: "no answer", error_at: NOW.toISOString() }],
      anchor: { size: 9, state: "final", transaction: null, block: 7, at: "2026-11-24T12:09:00.000Z" },
    }));
});

describe("Observations of the chains", async () => {
  const database = await freshDatabase();
  const owner = await forFile(connectOwner(database));
  const [one, other] = [await forFile(connect(database.apiUrl, 2)), await forFile(connect(database.apiUrl, 2))];
  const { chains, senders } = STATUS;
  const FACTS: ChainFacts = { chains, senders, isFacilitatorThere: true };

  test("One of many processes observes the chains, and all processes read its observation for up to a minute", async () => {
    let looks = 0;
    const look = async () => {
      looks++;
      return FACTS;
    };
    const processes = Array.from({ length: 8 }, (_, at) => createObservations(at % 2 === 0 ? one : other, look));
    const age = (seconds: number) =>
      owner.query(
        `UPDATE observation SET held_until = held_until - interval '${seconds} s', taken_at = taken_at - interval '${seconds} s'`,
      );
    const read = () => Promise.all(processes.map((one) => one.read()));
    const run = () => Promise.all(processes.map(({ job }) => job.run()));

    expect(await read()).toEqual(Array(8).fill(null));
    await run();
    await run();
    expect(looks).toBe(1);
    for (const found of await read()) expect(found).toEqual({ facts: FACTS, ageSeconds: expect.any(Number) });
    await age(5);
    await run();
    expect(looks).toBe(2);
    await age(61);
    expect(await read()).toEqual(Array(8).fill(null));
  });

  test("After a failed observation, another process makes the next one", async () => {
    const failing = createObservations(one, () => Promise.reject(new Error("no node")));
    const working = createObservations(other, async () => ({ ...FACTS, isFacilitatorThere: false }));
    await expect(failing.job.run()).rejects.toThrow("no node");
    await owner.query("UPDATE observation SET held_until = now()");
    await working.job.run();
    expect((await working.read())?.facts.isFacilitatorThere).toBe(false);
  });
});
