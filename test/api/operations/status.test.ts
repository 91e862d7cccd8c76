import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
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

test("the facilitator in this process is shown with address and balance on both networks", async () => {
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

test("a remote facilitator is ok while it answers", async () => {
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

test("a job that fails again and again is named, in JSON and on the page, until it succeeds", async () => {
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
