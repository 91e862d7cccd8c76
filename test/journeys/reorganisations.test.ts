import type { LocalAccount } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestChain, type TestChain } from "../support/chain.ts";
import {
  type Answer,
  cancel,
  chargedOnce,
  expectPaymentRequired,
  newPayer,
  nothingCharged,
  post,
  type Signed,
  send,
  settlements,
  signPayment,
  v2,
} from "../support/payments.ts";
import { startService, type TestService } from "../support/service.ts";

let chain: TestChain;
let service: TestService;
const basic = () => `${service.url}/test/basic`;

beforeAll(async () => {
  chain = await startTestChain({ slotsInAnEpoch: 3 });
  service = await startService({ chain });
  // anvil knows the state of loaded blocks only at its head: let the finalized one be one that it has mined.
  await chain.mine(10);
});
afterAll(async () => {
  await service?.stop();
  await chain?.stop();
});

async function paid(payer: LocalAccount): Promise<{ signed: Signed; answer: Answer }> {
  const signed = await signPayment(payer);
  const answer = await post(basic(), v2(signed));
  expect(answer.status).toBe(200);
  return { signed, answer };
}

/** The last block is replaced by an empty one. */
async function loseLastBlock(): Promise<void> {
  await chain.client.request({ method: "anvil_reorg", params: [1, []] } as never);
}

const recordOf = async (answer: Answer) => (await send(String(answer.body.cert_url))).body;
const soon = { timeout: 20_000, interval: 200 };

test("a settlement that a reorganisation removed is settled again, and its certificate says where", async () => {
  const payer = await newPayer(chain);
  const { signed, answer } = await paid(payer);
  await loseLastBlock();
  await nothingCharged(chain, payer);
  await chain.mine(2);
  await expect.poll(() => settlements(chain, payer.address), soon).toHaveLength(1);
  await chain.mine(8);
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

test("a settlement that is gone for good is marked: its certificate stays, and no longer verifies", async () => {
  const payer = await newPayer(chain);
  const { signed, answer } = await paid(payer);
  await loseLastBlock();
  await cancel(chain, payer, signed);
  await chain.mine(8);
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
  expect(expectPaymentRequired(await post(basic(), v2(signed)))).toMatch(/removed from the chain for good/);
  await nothingCharged(chain, payer);
});
