import { type Hex, keccak256, parseTransaction, stringToHex } from "viem";
import { describe, expect, test } from "vitest";
import { checkRegistries } from "../../../api/certificates/agent-registries/chain.ts";
import { ERC8004 } from "../../../contracts/erc8004.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import {
  evidenceFor,
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
import { PRICES } from "../../support/payments/prices.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";
import { attempt, BAIT, ENTRY, opened, PURSE, sign } from "../../support/sessions/runs.ts";

const { chain, service, owner, buy, pass, until, finalize, resolve } = await forFile(startPublishing());

describe("An order with an agent's id", () => {
  test("The result is published once, with a credential whose hash is in the registry", async () => {
    const agent = await newAgent(chain);
    const answer = await buy(agent);
    expect(await published(answer)).toMatchObject([{ status: "waiting", final: false, transaction: null }]);
    await pass();
    const feedback = [{ value: 1n, tag1: "x402-certificate", tag2: "basic", isRevoked: false }];
    expect(await feedbackFor(chain, agent)).toEqual(feedback);
    const [entry] = await published(answer);
    expect(entry).toMatchObject({
      status: "published",
      final: false,
      feedback_index: "1",
      publisher: PUBLISHER.toLowerCase(),
    });

    const credential = await send(String(entry?.credential_url));
    expect(await evidenceFor(chain, agent)).toEqual([
      { endpoint: "", feedbackURI: entry?.credential_url, feedbackHash: keccak256(stringToHex(credential.text)) },
    ]);
    const keys = await parseKeySet((await send(`${service.url}/.well-known/jwks.json`)).text);
    expect(await verifyDocument(credential.text, { keys, issuer: service.url })).toMatchObject({ valid: true });
    const page = await fetch(String(answer.body.cert_url), { headers: { accept: "text/html" } });
    expect(await page.text()).toContain(String(entry?.transaction));

    await pass();
    expect(await published(answer)).toMatchObject([{ status: "published", final: false }]);
    await finalize();
    await until(answer, ["published", true]);
    expect(await published(answer)).toMatchObject([{ reason: null, withdrawal_transaction: null }]);

    // As after a restore from a backup, the publication and its transaction are unknown.
    await owner.query("UPDATE publication SET state = 'ordered', tx = NULL, feedback_index = NULL WHERE agent = $1", [
      String(agent.id),
    ]);
    await owner.query("DELETE FROM relay_member");
    await pass();
    expect(await feedbackFor(chain, agent)).toEqual(feedback);
    expect(await published(answer)).toMatchObject([entry]);
  });

  test("An agent that does not belong to the payer is refused, and nothing is charged", async () => {
    const [agent, other] = [await newAgent(chain), await newPayer(chain)];
    const refused = async (erc8004: unknown, status: 400 | 422, at = service.url) => {
      const answer = await post(`${at}/test/basic`, v2(await signPayment(other)), JSON.stringify({ erc8004 }));
      expectProblem(answer, status, status === 400 ? "malformed_request" : "unacceptable");
      return answer.text;
    };
    expect(await refused({ agentId: String(agent.id) }, 422)).toContain(
      `the wallet of agent ${agent.id} is not the payer`,
    );
    expect(await refused({ agentId: "123456789" }, 422)).toContain("erc8004.agentId");
    expect(await refused({ agentId: "0x16" }, 400)).toContain("decimal number");
    expect(await refused({ agentId: String(2n ** 256n) }, 422)).toContain("256 bits");
    await nothingCharged(chain, other);
    expect((await owner.query("SELECT FROM publication WHERE agent = $1", [String(agent.id)])).rowCount).toBe(0);
  });

  test("A service that does not publish refuses an order with an agent's id and accepts one without", async () => {
    const plain = await startService({ chain, jobs: false });
    const agent = await newAgent(chain);
    const answer = await post(`${plain.url}/test/basic`, v2(await signPayment(agent.account)), order(agent));
    expectProblem(answer, 422, "unacceptable");
    expect(answer.text).toContain("Leave out erc8004");
    await buy(agent, JSON.stringify(["erc8004"]), plain.url);
    await plain.stop();
  });

  test("A result that is not about the wallet is not published", async () => {
    const agent = await newAgent(chain);
    const signed = await signPayment(agent.account, { value: PRICES.suite, validBefore: unixNow() + 3_600n });
    const answer = await post(`${service.url}/test/suite`, v2(signed), order(agent));
    expect(answer.body).toMatchObject({ verdict: "fail" });
    await pass();
    expect(await published(answer)).toMatchObject([{ status: "refused", reason: "not_about_wallet", final: true }]);
    expect(await feedbackFor(chain, agent)).toEqual([]);
  });

  test("A FAIL of a behavioral test is published", async () => {
    const agent = await newAgent(chain, PURSE);
    const signed = await signPayment(agent.account, { value: ENTRY });
    const start = await post(`${service.url}/test/scam/start`, v2(signed), order(agent));
    await pass();
    expect(await feedbackFor(chain, agent)).toEqual([]);
    const run = await opened(
      owner,
      { product: "scam", account: agent.account, at: service.url },
      { body: start.body, first: "bait" },
    );
    await attempt(run);
    const bait = await sign(run, "bait");
    expect(bait.authorization.value).toBe(BAIT);
    expect((await attempt(run, v2(bait))).body).toMatchObject({ status: "complete" });
    await pass();
    expect(await feedbackFor(chain, agent)).toEqual([
      { value: 0n, tag1: "x402-certificate", tag2: "scam", isRevoked: false },
    ]);
  });
});

test("A start with a wrong registry address fails with a message that names the variable", async () => {
  const { address: usdc } = chain.network.usdc;
  const check = (wrong: object) => checkRegistries(chain.client, { ...REGISTRIES, ...wrong });
  await check({});
  await expect(check({ identity: usdc })).rejects.toThrow(/^ERC8004_REPUTATION is wrong: .* belongs to the identity/);
  await expect(check({ identity: PUBLISHER })).rejects.toThrow(
    /^ERC8004_IDENTITY is wrong: .* is not an ERC-8004 registry/,
  );
  await expect(check({ reputation: usdc })).rejects.toThrow(
    /^ERC8004_REPUTATION is wrong: .* is not an ERC-8004 registry/,
  );
  await expect(check({ validation: ERC8004.identity })).rejects.toThrow(/^ERC8004_VALIDATION is wrong/);
});

// Withdrawn publications, and the gas that a misbehaving registry costs.

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
