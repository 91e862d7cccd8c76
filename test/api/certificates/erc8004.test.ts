import { keccak256, stringToHex } from "viem";
import { describe, expect, test } from "vitest";
import { checkRegistries } from "../../../api/certificates/agent-registries/chain.ts";
import { ERC8004 } from "../../../contracts/erc8004.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import {
  evidenceFor,
  feedbackFor,
  newAgent,
  order,
  PUBLISHER,
  published,
  REGISTRIES,
  startPublishing,
} from "../../support/certificates/publishing.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";
import { attempt, BAIT, ENTRY, opened, PURSE, sign } from "../../support/sessions/runs.ts";

const { chain, service, owner, buy, pass, until, finalize } = await forFile(startPublishing());

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
