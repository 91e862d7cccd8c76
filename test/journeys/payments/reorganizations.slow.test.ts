import type { Hex, LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { anotherTransaction, rawOf, reorganize } from "../../support/chain/blocks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired } from "../../support/payments/expectations.ts";
import { startFacilitator } from "../../support/payments/facilitator.ts";
import { broadcast, cancel, chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3, roomMinutes: 90 }));
const service = await forFile(startService({ chain }));
const basic = (at = service) => `${at.url}/test/basic`;
const facilitator = await forFile(startFacilitator(chain));
/** The same service behind a facilitator over HTTP, so no transaction is resent by the service's own relayer. */
const remote = await forFile(startService({ chain, config: { facilitator: { remote: facilitator.url } } }));
// anvil has the state of loaded blocks only at its head, so the finalized block must be one that it has mined.
await chain.mine(10);

async function paid(payer: LocalAccount, at = service): Promise<{ signed: Signed; answer: Answer }> {
  const signed = await signPayment(payer);
  const answer = await post(basic(at), v2(signed));
  expect(answer.status).toBe(200);
  return { signed, answer };
}

const loseLastBlock = () => reorganize(chain, 1, []);

const recordOf = async (answer: Answer) => (await send(String(answer.body.cert_url))).body;
const soon = { timeout: 20_000, interval: 200 };

test("A settlement that a reorganization removed is settled again, and its certificate shows the new block", async () => {
  const payer = await newPayer(chain);
  const { signed, answer } = await paid(payer);
  await loseLastBlock();
  await nothingCharged(chain, payer);
  await chain.mine(2);
  await expect.poll(() => settlements(chain, payer.address), soon).toHaveLength(1);
  await chain.finalize();
  const [settlement] = await settlements(chain, payer.address);
  const receipt = await chain.client.getTransactionReceipt({ hash: settlement?.transaction ?? "0x" });
  const place = { transaction: settlement?.transaction, block: Number(receipt.blockNumber) };
  expect(place.block).not.toBe((answer.body.settlement as { block: number }).block);
  await expect.poll(async () => (await recordOf(answer)).settlement, soon).toMatchObject(place);
  expect(await recordOf(answer)).toMatchObject({ id: answer.body.id, fresh: true, reversed: false });
  const replay = await post(basic(), v2(signed));
  expect([replay.status, replay.text]).toEqual([200, answer.text]);
  await chargedOnce(chain, signed);
});

test("A permanently removed settlement is marked, and its certificate remains but is no longer valid", async () => {
  const payer = await newPayer(chain);
  const { signed, answer } = await paid(payer);
  await loseLastBlock();
  await cancel(chain, payer, signed);
  await chain.finalize();
  await expect.poll(async () => (await recordOf(answer)).reversed, soon).toBe(true);
  expect(await recordOf(answer)).toMatchObject({
    id: answer.body.id,
    verdict: "pass",
    fresh: false,
    reversed: true,
    reversed_at: expect.stringMatching(/Z$/),
  });
  const { body } = await send(`${service.url}/verify?wallet=${payer.address}`);
  expect(body).toMatchObject({
    tested: true,
    verified: false,
    certs: [{ id: answer.body.id, fresh: false, reversed: true }],
  });
  expect((await send(String(answer.body.badge_url))).text).toContain("reversed");
  expect(expectPaymentRequired(await post(basic(), v2(signed)))).toMatch(/permanently removed from the chain/);
  await nothingCharged(chain, payer);
});

test("A rejected payment that a stranger settled is sold, and is never submitted when a reorganization removes it", async () => {
  const payer = await newPayer(chain, 0n);
  const signed = await signPayment(payer);
  expect(expectPaymentRequired(await post(basic(remote), v2(signed)))).toMatch(/balance/);
  await chain.fund(payer.address, PRICES.basic);
  await broadcast(chain, signed);
  // A lagging node does not know it yet.
  const again = () => post(basic(remote), v2(signed));
  await expect.poll(async () => (await again()).status, soon).toBe(200);
  const answer = await again();
  /** The number of finished attempts of the resolver. */
  const looks = () =>
    withClient(remote.database.ownerUrl, async (client) => {
      const text = "SELECT attempts FROM payment WHERE payer = $1 AND lease_until < now()";
      return (await client.query<{ attempts: number }>(text, [binary(payer.address)])).rows[0]?.attempts ?? 0;
    });
  const before = await looks();
  await loseLastBlock();
  await nothingCharged(chain, payer);
  await expect.poll(looks, soon).toBeGreaterThan(before);
  const replay = await again();
  expect([replay.status, replay.text]).toEqual([200, answer.text]);
  expect(facilitator.handed.get(signed.authorization.nonce)).toBeUndefined();
  await nothingCharged(chain, payer);
});

describe("settlement that a reorganization moved", () => {
  /** A payment with at least one block after it. */
  async function paidBeforeLast() {
    const payer = await newPayer(chain);
    const bought = await paid(payer, remote);
    await chain.mine();
    const place = bought.answer.body.settlement as { transaction: Hex; block: number };
    return { ...bought, payer, place };
  }

  /** Replaces the payment's block and all later ones. `offset` is counted from its block. */
  async function replaced({ block }: { readonly block: number }, raw: Hex, offset: number): Promise<void> {
    // A chain like Base makes as many blocks as its clock requires.
    const { number: head } = await chain.client.getBlock();
    await reorganize(chain, Number(head) - block + 1, [[raw, offset]]);
  }

  /** Expects the record, the receipt, and the replay to agree, now and once final, without a second submission. */
  async function expectMoved(
    { signed, answer, payer }: Awaited<ReturnType<typeof paidBeforeLast>>,
    place: { readonly transaction: Hex; readonly block: number },
  ): Promise<void> {
    await expect.poll(async () => (await recordOf(answer)).settlement, soon).toMatchObject(place);
    await chain.finalize();
    const receipt = async () => (await send(`${remote.url}/receipt?tx=${place.transaction}`)).body;
    const record_url = answer.body.cert_url;
    await expect
      .poll(receipt, soon)
      .toMatchObject({ ...place, final: true, purchases: [{ payer: payer.address.toLowerCase(), record_url }] });
    expect(await recordOf(answer)).toMatchObject({
      id: answer.body.id,
      fresh: true,
      reversed: false,
      settlement: { ...place, explorer_url: expect.stringContaining(place.transaction) },
    });
    const { body } = await send(`${remote.url}/verify?wallet=${payer.address}`);
    expect(body).toMatchObject({ verified: true, certs: [{ id: answer.body.id }] });
    const replay = await post(basic(remote), v2(signed));
    expect([replay.status, replay.text]).toEqual([200, answer.text]);
    expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);
    await chargedOnce(chain, signed);
  }

  test("A settlement moved to another block keeps its certificate, which shows the new block", async () => {
    const bought = await paidBeforeLast();
    const { transaction, block } = bought.place;
    await replaced(bought.place, await rawOf(chain, transaction), 1);
    await expectMoved(bought, { transaction, block: block + 1 });
  });

  test("A settlement moved to another transaction keeps its certificate, which shows the new transaction, and the old one has no receipt", async () => {
    const bought = await paidBeforeLast();
    const raw = await anotherTransaction(chain, bought.signed);
    await replaced(bought.place, raw, 0);
    const [settled] = await settlements(chain, bought.payer.address);
    const transaction = settled?.transaction ?? "0x";
    expect(transaction).not.toBe(bought.place.transaction);
    await expectMoved(bought, { transaction, block: bought.place.block });
    expect((await send(`${remote.url}/receipt?tx=${bought.place.transaction}`)).status).toBe(404);
  });
});

test("A vanished settlement that is still valid goes to the facilitator once more and becomes final", async () => {
  const payer = await newPayer(chain);
  const signed = await signPayment(payer);
  const answer = await post(basic(remote), v2(signed, { id: "vanished-and-paid-again" }));
  expect(answer.status).toBe(200);
  const handed = facilitator.asked().body;
  expect(handed.paymentPayload.extensions).toHaveProperty("payment-identifier.info.id", "vanished-and-paid-again");
  await loseLastBlock();
  await nothingCharged(chain, payer);
  await expect.poll(() => facilitator.handed.get(signed.authorization.nonce), soon).toBe(2);
  // The listing data is sent again, without the client.
  expect(facilitator.asked().body).toEqual(handed);
  await expect.poll(() => settlements(chain, payer.address), soon).toHaveLength(1);
  await chain.finalize();
  const [settled] = await settlements(chain, payer.address);
  const transaction = settled?.transaction;
  await expect.poll(async () => (await recordOf(answer)).settlement, soon).toMatchObject({ transaction });
  expect(await recordOf(answer)).toMatchObject({ fresh: true, reversed: false });
  expect(facilitator.handed.get(signed.authorization.nonce)).toBe(2);
  await chargedOnce(chain, signed);
});
