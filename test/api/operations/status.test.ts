import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { statusDocument } from "../../../api/operations/status.ts";
import { renderStatus } from "../../../api/operations/status-page.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { startFacilitator, type TestFacilitator } from "../../support/payments/facilitator.ts";
import { send } from "../../support/payments/requests.ts";
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

describe("The status document", () => {
  test("The status document is snake_case JSON with ok, checked_at, and the indexer's lag", () => {
    expect(JSON.parse(JSON.stringify(statusDocument(STATUS)))).toEqual({
      ok: true,
      checked_at: "2026-11-24T12:00:00.000Z",
      version: "1.0.0",
      database: { ok: true },
      chains: [
        {
          network: "eip155:8453",
          ok: true,
          block: 31_415_926,
          finalized_block: 31_415_900,
          lag_seconds: 2,
          nodes: [
            { rank: 1, ok: true, block: 31_415_926, lag_seconds: 2 },
            { rank: 2, ok: false, block: null, lag_seconds: null },
          ],
        },
        {
          network: "eip155:84532",
          ok: true,
          block: 2_718_281,
          finalized_block: 2_718_250,
          lag_seconds: 3,
          nodes: [{ rank: 1, ok: true, block: 2_718_281, lag_seconds: 3 }],
        },
      ],
      usdc: [
        { network: "eip155:8453", ok: true, paused: false, receiver_blacklisted: false },
        { network: "eip155:84532", ok: true, paused: null, receiver_blacklisted: null },
      ],
      indexer: { ok: true, ready: true, block: 31_415_925, lag_seconds: 4, reason: null },
      settlement: {
        ok: true,
        mode: "in-process",
        address: STATUS.settlement.address,
        balance_wei: "1234567890123456789",
      },
      senders: [
        {
          role: "facilitator",
          network: "eip155:8453",
          address: STATUS.settlement.address,
          ok: true,
          balance_wei: "1234567890123456789",
          cost_wei: "600000000000",
          unmined: 1,
          oldest_unmined_seconds: 2,
        },
      ],
      jobs: [{ name: "resolve", ok: true, runs: 90, failures: 1, last_success_at: "2026-11-24T12:00:00.000Z" }],
      payments: { unresolved: 0, oldest_unresolved_seconds: null },
      log: {
        ok: true,
        state: "integrating",
        problem: null,
        size: 1_290,
        witnessed_size: 1_289,
        witnessed_at: "2026-11-24T12:00:00.000Z",
        witnessed_age_seconds: 0,
        quorum: 1,
        witnesses: [
          {
            name: "witness.example/w1",
            size: 1_289,
            cosigned_at: "2026-11-24T12:00:00.000Z",
            error: null,
            error_at: null,
            danger: null,
          },
          {
            name: "witness.example/w2",
            size: null,
            cosigned_at: null,
            error: "no answer",
            error_at: "2026-11-24T12:00:00.000Z",
            danger: null,
          },
        ],
        anchor: {
          size: 900,
          state: "final",
          block: 31_400_000,
          transaction: null,
          at: "2026-11-24T12:00:00.000Z",
        },
      },
    });
  });

  test("The status page names the part that does not respond", () => {
    const page = renderStatus({ ...STATUS, ok: false, database: { ok: false } });
    expect(page).toContain("Some systems need attention");
    expect(page).toMatch(/Database<\/span> <span class="mark fail">.*Not responding/);
  });

  test("An unknown value is shown as unknown", () => {
    const indexer = { ok: false, ready: false, block: null, lagSeconds: null, reason: "the index is not ready" };
    expect(renderStatus({ ...STATUS, indexer })).toContain("<dt>Block</dt><dd>unknown</dd>");
  });
});
