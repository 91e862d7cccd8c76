import { hashTypedData, type LocalAccount, recoverAddress, type TypedDataDefinition } from "viem";
import { describe, expect, test } from "vitest";
import { checkFailProof } from "../../../../packages/verifier/src/fail-proof.ts";
import { withClient } from "../../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { PRICES } from "../../../support/payments/prices.ts";
import { type Answer, challengeOf, post, send, v2 } from "../../../support/payments/requests.ts";
import { altered, newPayer, type Signed, signPayment } from "../../../support/payments/signing.ts";
import { binary } from "../../../support/service/database.ts";
import { PAY_TO } from "../../../support/service/environment.ts";
import { startService } from "../../../support/service/service.ts";

/** The stored signature of an order that an agent should have refused. */

let agent: LocalAccount;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, jobs: false }));

const unixAtHead = async () => (await chain.client.getBlock()).timestamp;

/** Starts a session of a new agent. Returns its URL and the bait's recipient and amount. */
async function begin(product: "scam" | "recipient") {
  agent = await newPayer(chain, 100_000_000n);
  const entry = await signPayment(agent, { value: PRICES.entry, validBefore: (await unixAtHead()) + 120n });
  const { status, body } = await post(`${service.url}/test/${product}/start`, v2(entry));
  expect(status).toBe(200);
  const { url } = body.next as { url: string };
  const orders = [await post(url), await post(url)].map((answer) => challengeOf(answer).accepts[0]);
  const bait = orders.find(
    (order) => order?.amount !== String(PRICES.control) || order?.payTo.toLowerCase() !== PAY_TO,
  );
  return { url, bait: { to: bait?.payTo.toLowerCase() as `0x${string}`, value: BigInt(bait?.amount ?? 0) } };
}

/** Signs the order that should be refused. */
async function failTest(): Promise<{ answer: Answer; signed: Signed; url: string }> {
  const { url, bait } = await begin("scam");
  const signed = await signPayment(agent, { ...bait, validBefore: (await unixAtHead()) + 60n });
  const answer = await post(url, v2(signed));
  expect(answer.body).toMatchObject({ status: "complete", verdict: "fail" });
  return { answer, signed, url };
}

const record = async ({ body }: Answer) =>
  (await send(String(body.cert_url), { headers: { accept: "application/json" } })).body;

const sealed = ({ authorization }: Signed) =>
  withClient(service.database.ownerUrl, async (client) => {
    const nonce = binary(authorization.nonce);
    return (await client.query("SELECT encrypted_signature FROM payment WHERE nonce = $1", [nonce])).rows[0]
      ?.encrypted_signature;
  });

async function untilFinallyPast(time: bigint): Promise<void> {
  await chain.increaseTime(Number(time - (await unixAtHead())) + 1);
  await chain.mine(3);
}

// These tests advance the chain's clock, so they come last.
describe("The proof of a FAIL", () => {
  test("The digest and signer are shown immediately, and the full proof once a final block is past validBefore", async () => {
    const { answer, signed } = await failTest();
    const { digest, signer, valid_before } = (
      answer.body.detected as { behaviour: { signature: Record<string, string> } }
    ).behaviour.signature;
    expect([signer, valid_before]).toEqual([agent.address.toLowerCase(), String(signed.authorization.validBefore)]);
    expect(await recoverAddress({ hash: digest as `0x${string}`, signature: signed.signature })).toBe(agent.address);

    expect(await service.upkeep.proofs.publishDue()).toBe(0);
    expect((await record(answer)).proof).toBeUndefined();
    expect(JSON.stringify(await record(answer))).not.toContain(signed.signature.slice(2));

    await chain.increaseTime(Number(signed.authorization.validBefore - (await unixAtHead())) + 1);
    // The head is past validBefore, but the final block is not.
    expect(await service.upkeep.proofs.publishDue()).toBe(0);
    await chain.mine(3);
    expect(await service.upkeep.proofs.publishDue()).toBe(1);
    const { proof } = (await record(answer)) as unknown as { proof: Proof };
    expect(proof).toMatchObject({
      digest,
      signer,
      valid_before,
      signature: signed.signature,
      broadcast: false,
      challenge: { pay_to: PAY_TO, amount: "50000000" },
    });
    expect(hashTypedData(proof.typed_data)).toBe(digest);
    const text = await (await fetch(`${answer.body.cert_url}?format=json`)).text();
    expect(await checkFailProof(text)).toMatchObject({ valid: true, signer: agent.address, amount: "50000000" });
    for (const changed of [
      text.replaceAll(String(digest), `0x${"00".repeat(32)}`),
      text.replace('"value":"50000000"', '"value":"50000001"'),
      text.replaceAll(agent.address.toLowerCase(), PAY_TO),
      text.replace(signed.signature, altered(signed.signature, 7)),
    ]) {
      expect(changed).not.toBe(text);
      expect((await checkFailProof(changed)).valid).toBe(false);
    }
    expect(await sealed(signed)).toBeNull();
    expect(await service.upkeep.proofs.publishDue()).toBe(0);
  });

  test("A broadcast signature is reported in the proof and raises an alert while it is valid", async () => {
    const { answer, signed } = await failTest();
    await service.upkeep.proofs.watch();
    const alerts = () =>
      service.logged.filter((line) => line.includes(signed.authorization.nonce) && line.includes("must be returned"));
    expect(alerts()).toEqual([]);
    await broadcast(chain, signed);
    await service.upkeep.proofs.watch();
    await service.upkeep.proofs.watch();
    expect(alerts()).toHaveLength(1);
    await untilFinallyPast(signed.authorization.validBefore);
    await service.upkeep.proofs.publishDue();
    expect(((await record(answer)) as unknown as { proof: Proof }).proof.broadcast).toBe(true);
  });

  test("Two concurrent processes publish a proof once", async () => {
    const { answer, signed } = await failTest();
    const second = await startService({
      chain,
      database: service.database,
      jobs: false,
      config: { ...service.config },
    });
    await untilFinallyPast(signed.authorization.validBefore);
    await Promise.all([service.upkeep.proofs.publishDue(), second.upkeep.proofs.publishDue()]);
    await second.stop();
    expect(((await record(answer)) as unknown as { proof: Proof }).proof.signature).toBe(signed.signature);
  });

  test("An unpublishable proof is logged, retried in an hour, and does not block the next one", async () => {
    const [spoilt, sound] = [await failTest(), await failTest()];
    const query = (text: string, ...values: unknown[]) =>
      withClient(service.database.ownerUrl, (client) => client.query(text, values));
    const SEALED = "UPDATE payment SET encrypted_signature = $2 WHERE nonce = $1";
    const nonce = binary(spoilt.signed.authorization.nonce);
    const was = await sealed(spoilt.signed);
    await query(SEALED, nonce, Buffer.alloc(93, 7));
    await untilFinallyPast(sound.signed.authorization.validBefore);
    expect(await service.upkeep.proofs.publishDue()).toBe(1);
    expect([(await record(sound.answer)).proof, (await record(spoilt.answer)).proof]).toEqual([
      expect.objectContaining({ signature: sound.signed.signature }),
      undefined,
    ]);
    const alerts = () => service.logged.filter((line) => line.includes("a proof could not be published"));
    expect(alerts()).toEqual([expect.stringContaining(String(spoilt.answer.body.cert_url).slice(-16))]);
    expect([await service.upkeep.proofs.publishDue(), alerts().length]).toEqual([0, 1]);
    await query(SEALED, nonce, was);
    await query("UPDATE payment SET next_attempt_at = next_attempt_at - interval '1 h' WHERE nonce = $1", nonce);
    expect(await service.upkeep.proofs.publishDue()).toBe(1);
    expect((await record(spoilt.answer)).proof).toMatchObject({ signature: spoilt.signed.signature });
  });
});

interface Proof {
  readonly typed_data: TypedDataDefinition;
  readonly signature: string;
  readonly broadcast: boolean;
}
