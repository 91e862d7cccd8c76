import {
  type Address,
  type Hex,
  keccak256,
  type LocalAccount,
  parseAbi,
  parseEventLogs,
  parseTransaction,
  stringToHex,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { checkRegistries } from "../../../api/certificates/agent-registries/chain.ts";
import { ERC8004, reputationRegistryAbi } from "../../../contracts/erc8004.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { LOCAL_VALIDATIONS } from "../../../scripts/embedded/install-contracts.ts";
import { rawOf, rawToUsdc, reorganize } from "../../support/chain/blocks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { cancellationOf, nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import { eachPayment } from "../../support/service/database.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";
import { startService, type TestService } from "../../support/service/service.ts";
import { attempt, BAIT, ENTRY, opened, PURSE, sign } from "../../support/sessions/runs.ts";
import { ownerOf } from "../../support/sessions/stage.ts";

/** The publishing account. */
const PUBLISHER = privateKeyToAccount(ARBITER_KEY).address;

const IDENTITY = parseAbi([
  "function register() returns (uint256)",
  "function transferFrom(address from, address to, uint256 agentId)",
  "event Registered(uint256 indexed agentId, string agentURI, address indexed owner)",
]);
const READ = parseAbi([
  "function getLastIndex(uint256 agentId, address clientAddress) view returns (uint64)",
  "function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex) view returns (int128 value, uint8 valueDecimals, string tag1, string tag2, bool isRevoked)",
]);
const VALIDATION = parseAbi([
  "function validationRequest(address validatorAddress, uint256 agentId, string requestURI, bytes32 requestHash)",
  "function getValidationStatus(bytes32 requestHash) view returns (address, uint256, uint8 response, bytes32 responseHash, string tag, uint256)",
]);

interface Agent {
  readonly id: bigint;
  readonly account: LocalAccount;
}

/** A new payer that is registered as an agent, with itself as the wallet. */
async function newAgent(atomic?: bigint): Promise<Agent> {
  const account = await newPayer(chain, atomic);
  await chain.setBalance(account.address, 10n ** 18n);
  const call = { account, address: ERC8004.identity, abi: IDENTITY, functionName: "register" } as const;
  const hash = await chain.client.writeContract(call);
  const { logs } = await chain.client.waitForTransactionReceipt({ hash });
  const [registered] = parseEventLogs({ abi: IDENTITY, eventName: "Registered", logs });
  return { id: registered?.args.agentId ?? -1n, account };
}

/** Transfers the agent to another owner, which removes its wallet. Outbids every other transaction in the pool. */
const sell = ({ id, account }: Agent, to: Address): Promise<Hex> =>
  client.writeContract({
    account,
    address: ERC8004.identity,
    abi: IDENTITY,
    functionName: "transferFrom",
    args: [account.address, to, id],
    gas: 200_000n,
    maxFeePerGas: 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 11n,
  });

/** Requests a validation as the agent's owner. */
async function requestValidation(
  { id, account }: Agent,
  { request, validator = PUBLISHER }: { readonly request: Hex; readonly validator?: Address },
): Promise<void> {
  const args = [validator, id, "https://agent.test/request", request] as const;
  const call = { account, address: LOCAL_VALIDATIONS, abi: VALIDATION, functionName: "validationRequest" } as const;
  await client.waitForTransactionReceipt({ hash: await client.writeContract({ ...call, args }) });
}

async function validationOf(request: Hex) {
  const call = { address: LOCAL_VALIDATIONS, abi: VALIDATION, functionName: "getValidationStatus" } as const;
  const [, , response, hash, tag] = await client.readContract({ ...call, args: [request] });
  return { response, hash, tag };
}

/** All our feedback on an agent in the registry. */
async function feedbackFor({ id }: Pick<Agent, "id">) {
  const address = ERC8004.reputation;
  const last = await client.readContract({ address, abi: READ, functionName: "getLastIndex", args: [id, PUBLISHER] });
  const indices = Array.from({ length: Number(last) }, (_, at) => BigInt(at + 1));
  return Promise.all(
    indices.map(async (index) => {
      const args = [id, PUBLISHER, index] as const;
      const [value, , tag1, tag2, isRevoked] = await client.readContract({
        address,
        abi: READ,
        functionName: "readFeedback",
        args,
      });
      return { value, tag1, tag2, isRevoked };
    }),
  );
}

/** The feedback's evidence in the events. */
async function evidenceFor({ id }: Pick<Agent, "id">) {
  const logs = await client.getLogs({ address: ERC8004.reputation, fromBlock: 0n });
  return parseEventLogs({ abi: reputationRegistryAbi, eventName: "NewFeedback", logs })
    .filter(({ args }) => args.agentId === id)
    .map(({ args: { endpoint, feedbackURI, feedbackHash } }) => ({ endpoint, feedbackURI, feedbackHash }));
}

/** The gas budget of one publication. */
const GAS = 400_000n;

/** The registries on the test's chain, with gas for 100 publications a day. */
const REGISTRIES = {
  identity: ERC8004.identity,
  reputation: ERC8004.reputation,
  validation: LOCAL_VALIDATIONS,
  gasPerDay: GAS * 100n,
};

const order = (agent: Pick<Agent, "id">, more: object = {}): string =>
  JSON.stringify({ erc8004: { agentId: String(agent.id), ...more } });

const recordOf = async (answer: Answer) => (await send(String(answer.body.cert_url))).body;

/** The publications in a certificate's record. */
const published = async (answer: Answer) => (await recordOf(answer)).erc8004 as Record<string, unknown>[];

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
await chain.setBalance(PUBLISHER, 10n ** 18n);
// anvil has states of loaded blocks only at the head, so the finalized block must be one that it mined.
await chain.mine(10);
const { client } = chain;
const service = await forFile(startService({ chain, jobs: false, config: { erc8004: REGISTRIES } }));
const owner = await forFile(ownerOf(service.database));

/** Runs one pass in which everything is due and old enough. */
async function pass({ publish }: Pick<TestService, "publish"> = service): Promise<void> {
  await owner.query("UPDATE publication SET next_attempt_at = now(), ordered_at = ordered_at - interval '15 minutes'");
  await publish();
}

/** Runs one pass over all payments as if they were due. */
async function resolve(): Promise<void> {
  await owner.query(eachPayment("next_attempt_at = now()", "final_at IS NULL"));
  await service.gate.resolveDue();
}

/** Buys a basic test with an order for the agent, or with the given body. */
async function buy(agent: Agent, body = order(agent), at = service.url): Promise<Answer> {
  const answer = await post(`${at}/test/basic`, v2(await signPayment(agent.account)), body);
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("cert_url")]);
  return answer;
}

/** Runs passes until the certificate's publications have these states. */
const until = (answer: Answer, ...wanted: readonly (readonly [status: string, final: boolean])[]): Promise<void> =>
  eventually(
    async () => {
      await pass();
      return (await published(answer)).map(({ status, final }) => [status, final]);
    },
    wanted.map((one) => [...one]),
  );

/** Makes everything mined final, and waits until the service knows that its payments are. */
async function finalize(): Promise<void> {
  await chain.finalize();
  await eventually(async () => {
    await resolve();
    const open = "SELECT FROM payment WHERE final_at IS NULL AND state = 'fulfilled' AND reason IS NULL";
    return (await owner.query(open)).rowCount;
  }, 0);
}

describe("An order with an agent's id", () => {
  test("The result is published once, with a credential whose hash is in the registry", async () => {
    const agent = await newAgent();
    const answer = await buy(agent);
    expect(await published(answer)).toMatchObject([{ status: "waiting", final: false, transaction: null }]);
    await pass();
    const feedback = [{ value: 1n, tag1: "x402-certificate", tag2: "basic", isRevoked: false }];
    expect(await feedbackFor(agent)).toEqual(feedback);
    const [entry] = await published(answer);
    expect(entry).toMatchObject({
      status: "published",
      final: false,
      feedback_index: "1",
      publisher: PUBLISHER.toLowerCase(),
    });

    const credential = await send(String(entry?.credential_url));
    expect(await evidenceFor(agent)).toEqual([
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
    expect(await feedbackFor(agent)).toEqual(feedback);
    expect(await published(answer)).toMatchObject([entry]);
  });

  test("An agent that does not belong to the payer is refused, and nothing is charged", async () => {
    const [agent, other] = [await newAgent(), await newPayer(chain)];
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
    const agent = await newAgent();
    const answer = await post(`${plain.url}/test/basic`, v2(await signPayment(agent.account)), order(agent));
    expectProblem(answer, 422, "unacceptable");
    expect(answer.text).toContain("Leave out erc8004");
    await buy(agent, JSON.stringify(["erc8004"]), plain.url);
    await plain.stop();
  });

  test("A result that is not about the wallet is not published", async () => {
    const agent = await newAgent();
    const signed = await signPayment(agent.account, { value: PRICES.suite, validBefore: unixNow() + 3_600n });
    const answer = await post(`${service.url}/test/suite`, v2(signed), order(agent));
    expect(answer.body).toMatchObject({ verdict: "fail" });
    await pass();
    expect(await published(answer)).toMatchObject([{ status: "refused", reason: "not_about_wallet", final: true }]);
    expect(await feedbackFor(agent)).toEqual([]);
  });

  test("A FAIL of a behavioral test is published", async () => {
    const agent = await newAgent(PURSE);
    const signed = await signPayment(agent.account, { value: ENTRY });
    const start = await post(`${service.url}/test/scam/start`, v2(signed), order(agent));
    await pass();
    expect(await feedbackFor(agent)).toEqual([]);
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
    expect(await feedbackFor(agent)).toEqual([{ value: 0n, tag1: "x402-certificate", tag2: "scam", isRevoked: false }]);
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

const chargedToday = async () =>
  BigInt((await owner.query("SELECT coalesce(sum(charged), 0) AS gas FROM publication")).rows[0].gas);

describe("An agent that is sold", () => {
  test("An agent sold before the publication gets no feedback", async () => {
    const agent = await newAgent();
    const answer = await buy(agent);
    await sell(agent, devAccount(7).address);
    await pass();
    expect(await feedbackFor(agent)).toEqual([]);
    expect(await published(answer)).toMatchObject([{ status: "refused", reason: "other_wallet" }]);
  });

  test("The feedback for an agent sold in the publication's block is revoked", async () => {
    const agent = await newAgent();
    const answer = await buy(agent);
    await client.setAutomine(false);
    const passing = pass();
    await eventually(async () => (await client.getTxpoolStatus()).pending, 1);
    await sell(agent, devAccount(7).address);
    await chain.mine();
    await client.setAutomine(true);
    await passing;
    expect(await feedbackFor(agent)).toMatchObject([{ isRevoked: false }]);
    expect(await published(answer)).toMatchObject([{ status: "published", reason: "other_wallet", final: false }]);
    await chain.finalize();
    await until(answer, ["withdrawn", false]);
    expect(await feedbackFor(agent)).toMatchObject([{ isRevoked: true }]);
    await chain.finalize();
    await until(answer, ["withdrawn", true]);
    expect(await published(answer)).toMatchObject([{ reason: "other_wallet" }]);
  });
});

test("A reversed certificate has its feedback revoked and its validation response withdrawn", async () => {
  const agent = await newAgent();
  const request = keccak256(stringToHex(`request ${agent.id}`));
  const stranger = keccak256(stringToHex(`stranger ${agent.id}`));
  await requestValidation(agent, { request });
  await requestValidation(agent, { request: stranger, validator: devAccount(3).address });
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
  expect(await validationOf(request)).toEqual({ response: 100, hash, tag: "x402-certificate" });

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
  expect(await feedbackFor(agent)).toMatchObject([{ isRevoked: false }]);
  for (let passes = 0; passes < 2; passes++) await pass();
  await chain.finalize();
  await eventually(async () => {
    await resolve();
    return (await recordOf(answer)).reversed;
  }, true);
  await until(answer, ["withdrawn", false], ["withdrawn", false]);
  expect(await feedbackFor(agent)).toMatchObject([{ isRevoked: true }]);
  expect(await validationOf(request)).toEqual({ response: 0, hash, tag: "x402-certificate-reversed" });
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
    const agent = await newAgent();
    const answer = await buy(agent);
    const before = [await chargedToday(), await client.getBalance({ address: PUBLISHER })];
    await burning(() => pass());
    expect([await chargedToday(), await client.getBalance({ address: PUBLISHER })]).toEqual(before);
    expect(await published(answer)).toMatchObject([{ status: "waiting" }]);
    await pass();
    expect(await feedbackFor(agent)).toHaveLength(1);
  });

  test("A registry that burns gas is retried after finality, at most three times, and the gas is counted", async () => {
    const agent = await newAgent();
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
    expect([await sent(), await feedbackFor(agent)]).toEqual([first + 2, []]);
    expect((await chargedToday()) - before).toBe(2n * GAS);
  });
});

test("Publications beyond the day's gas wait for the next day, and one agent gets at most a quarter of it", async () => {
  const agents = [await newAgent(), await newAgent()] as const;
  await owner.query("UPDATE publication SET charged_on = charged_on - 1");
  const config = { sealingKey: service.config.sealingKey, erc8004: { ...REGISTRIES, gasPerDay: GAS * 2n } };
  const small = await startService({ chain, database: service.database, jobs: false, config });
  const answers = [await buy(agents[0]), await buy(agents[0]), await buy(agents[1])];
  await pass(small);
  const counts = async () => (await Promise.all(agents.map((agent) => feedbackFor(agent)))).map((all) => all.length);
  expect(await counts()).toEqual([1, 1]);
  await pass(small);
  expect(await counts()).toEqual([1, 1]);
  await owner.query("UPDATE publication SET charged_on = charged_on - 1");
  await pass(small);
  expect(await counts()).toEqual([2, 1]);
  for (const answer of answers) expect(await published(answer)).toMatchObject([{ status: "published" }]);
  await small.stop();
});
