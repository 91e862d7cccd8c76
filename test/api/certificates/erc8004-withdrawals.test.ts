import { type Hex, keccak256, parseTransaction, stringToHex } from "viem";
import { describe, expect, test } from "vitest";
import { ERC8004 } from "../../../contracts/erc8004.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import {
  feedbackFor,
  GAS,
  newAgent,
  order,
  PUBLISHER,
  published,
  REGISTRIES,
  recordOf,
  requestValidation,
  sell,
  startPublishing,
  validationOf,
} from "../../support/certificates/publishing.ts";
import { rawOf, rawToUsdc, reorganize } from "../../support/chain/blocks.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { cancellationOf, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

// Withdrawn publications, and the gas that a misbehaving registry costs.

const stage = await forFile(startPublishing());
const { chain, service, owner, buy, pass, until, resolve } = stage;
const { client } = chain;

const chargedToday = async () =>
  BigInt((await owner.query("SELECT coalesce(sum(charged), 0) AS gas FROM publication")).rows[0].gas);

describe("An agent that is sold", () => {
  test("An agent sold before the publication gets no feedback", async () => {
    const agent = await newAgent(chain);
    const answer = await buy(agent);
    await sell(chain, agent, devAccount(7).address);
    await pass();
    expect(await feedbackFor(chain, agent)).toEqual([]);
    expect(await published(answer)).toMatchObject([{ status: "refused", reason: "other_wallet" }]);
  });

  test("The feedback for an agent sold in the publication's block is revoked", async () => {
    const agent = await newAgent(chain);
    const answer = await buy(agent);
    await client.setAutomine(false);
    const passing = pass();
    await eventually(async () => (await client.getTxpoolStatus()).pending, 1);
    await sell(chain, agent, devAccount(7).address);
    await chain.mine();
    await client.setAutomine(true);
    await passing;
    expect(await feedbackFor(chain, agent)).toMatchObject([{ isRevoked: false }]);
    expect(await published(answer)).toMatchObject([{ status: "published", reason: "other_wallet", final: false }]);
    await chain.finalize();
    await until(answer, ["withdrawn", false]);
    expect(await feedbackFor(chain, agent)).toMatchObject([{ isRevoked: true }]);
    await chain.finalize();
    await until(answer, ["withdrawn", true]);
    expect(await published(answer)).toMatchObject([{ reason: "other_wallet" }]);
  });
});

test("A reversed certificate has its feedback revoked and its validation response withdrawn", async () => {
  const agent = await newAgent(chain);
  const request = keccak256(stringToHex(`request ${agent.id}`));
  const stranger = keccak256(stringToHex(`stranger ${agent.id}`));
  await requestValidation(chain, agent, { request });
  await requestValidation(chain, agent, { request: stranger, validator: devAccount(3).address });
  for (const unknown of [stranger, keccak256(stringToHex("unknown request"))]) {
    const asked = order(agent, { validationRequest: unknown });
    const answer = await post(`${service.url}/test/basic`, v2(await signPayment(agent.account)), asked);
    expectProblem(answer, 422, "unacceptable");
    expect(answer.text).toContain("names");
  }
  await nothingCharged(chain, agent.account);

  const signed = await signPayment(agent.account);
  const canceled = await rawToUsdc(chain, {
    by: devAccount(6),
    data: await cancellationOf(chain, agent.account, signed),
  });
  const answer = await post(`${service.url}/test/basic`, v2(signed), order(agent, { validationRequest: request }));
  expect(answer.status).toBe(200);
  const paidIn = (answer.body.settlement as { block: number }).block;
  await pass();
  const entries = await published(answer);
  expect(entries).toMatchObject([
    { registry: "reputation", status: "published" },
    { registry: "validation", status: "published", validation_request: request },
  ]);
  const hash = keccak256(stringToHex((await send(String(entries[0]?.credential_url))).text));
  expect(await validationOf(chain, request)).toEqual({ response: 100, hash, tag: "x402-certificate" });

  const { transaction: settlement } = answer.body.settlement as { transaction: Hex };
  const statements = entries.map(({ transaction }) => transaction as Hex);
  const raws = await Promise.all([settlement, ...statements].map((hash) => rawOf(chain, hash)));
  // Sorts the publisher's transactions by nonce.
  raws.sort((one, other) => (parseTransaction(one).nonce ?? 0) - (parseTransaction(other).nonce ?? 0));
  const depth = Number(await client.getBlockNumber({ cacheTime: 0 })) - paidIn + 1;
  await reorganize(
    chain,
    depth,
    [canceled, ...raws].map((raw) => [raw, 0] as const),
  );
  await nothingCharged(chain, agent.account);
  expect(await feedbackFor(chain, agent)).toMatchObject([{ isRevoked: false }]);
  for (let passes = 0; passes < 2; passes++) await pass();
  await chain.finalize();
  await eventually(async () => {
    await resolve();
    return (await recordOf(answer)).reversed;
  }, true);
  await until(answer, ["withdrawn", false], ["withdrawn", false]);
  expect(await feedbackFor(chain, agent)).toMatchObject([{ isRevoked: true }]);
  expect(await validationOf(chain, request)).toEqual({ response: 0, hash, tag: "x402-certificate-reversed" });
  await chain.finalize();
  await until(answer, ["withdrawn", true], ["withdrawn", true]);
  expect(await published(answer)).toMatchObject([{ reason: "reversed" }, { reason: "reversed" }]);
});

describe("A misbehaving registry", () => {
  const BURNS: Hex = "0xfe";
  async function burning(work: () => Promise<void>): Promise<void> {
    const code = (await client.getCode({ address: ERC8004.reputation })) as Hex;
    await client.setCode({ address: ERC8004.reputation, bytecode: BURNS });
    await work();
    await client.setCode({ address: ERC8004.reputation, bytecode: code });
  }
  /** Runs a pass that is estimated with the registry's real code and mines with the gas-burning one. */
  async function mineWhileBurning(): Promise<void> {
    await client.setAutomine(false);
    const passing = pass();
    await eventually(async () => (await client.getTxpoolStatus()).pending, 1);
    await burning(() => chain.mine());
    await client.setAutomine(true);
    await passing;
  }

  test("A registry that fails in the simulation is sent no transaction and costs no gas", async () => {
    const agent = await newAgent(chain);
    const answer = await buy(agent);
    const before = [await chargedToday(), await client.getBalance({ address: PUBLISHER })];
    await burning(() => pass());
    expect([await chargedToday(), await client.getBalance({ address: PUBLISHER })]).toEqual(before);
    expect(await published(answer)).toMatchObject([{ status: "waiting" }]);
    await pass();
    expect(await feedbackFor(chain, agent)).toHaveLength(1);
  });

  test("A registry that burns gas is retried after finality, at most three times, and the gas is counted", async () => {
    const agent = await newAgent(chain);
    const answer = await buy(agent);
    const before = await chargedToday();
    const sent = () => client.getTransactionCount({ address: PUBLISHER });
    const first = await sent();
    const attempts = async () =>
      (await owner.query("SELECT attempt FROM publication WHERE agent = $1", [String(agent.id)])).rows[0].attempt;
    await mineWhileBurning();
    await pass();
    expect([await sent(), await attempts()]).toEqual([first + 1, 0]);
    await chain.finalize();
    await burning(() =>
      eventually(async () => {
        await pass();
        return attempts();
      }, 1),
    );
    await owner.query("UPDATE publication SET attempt = 2 WHERE agent = $1", [String(agent.id)]);
    await mineWhileBurning();
    await chain.finalize();
    await until(answer, ["failed", true]);
    expect([await sent(), await feedbackFor(chain, agent)]).toEqual([first + 2, []]);
    expect((await chargedToday()) - before).toBe(2n * GAS);
  });
});

test("Publications beyond the day's gas wait for the next day, and one agent gets at most a quarter of it", async () => {
  const agents = [await newAgent(chain), await newAgent(chain)] as const;
  await owner.query("UPDATE publication SET charged_on = charged_on - 1");
  const config = { sealingKey: service.config.sealingKey, erc8004: { ...REGISTRIES, gasPerDay: GAS * 2n } };
  const small = await startService({ chain, database: service.database, jobs: false, config });
  const answers = [await buy(agents[0]), await buy(agents[0]), await buy(agents[1])];
  await pass(small);
  const told = async () =>
    (await Promise.all(agents.map((agent) => feedbackFor(chain, agent)))).map((all) => all.length);
  expect(await told()).toEqual([1, 1]);
  await pass(small);
  expect(await told()).toEqual([1, 1]);
  await owner.query("UPDATE publication SET charged_on = charged_on - 1");
  await pass(small);
  expect(await told()).toEqual([2, 1]);
  for (const answer of answers) expect(await published(answer)).toMatchObject([{ status: "published" }]);
  await small.stop();
});
