import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";

vi.setConfig({ testTimeout: 120_000 });
const soon = { timeout: 30_000, interval: 20 };
const TOGETHER = 6;

const stage = await forFile(startApiStage());
const { chain, owner } = stage;
const node = await forFile(startHoldingNode(chain));
let api = await stage.start(node);

afterEach(() => chain.client.setAutomine(true));

const pay = (signed: Signed): Promise<Answer> => post(`${api.url}/test/basic`, v2(signed));
const pending = async () => (await chain.client.getTxpoolStatus()).pending;
const stored = async () =>
  (await owner.query<{ size: number }>("SELECT cardinality(purposes) AS size FROM relay ORDER BY id")).rows;

async function signedBy(count: number): Promise<Signed[]> {
  const signed: Signed[] = [];
  while (signed.length < count) signed.push(await signPayment(await newPayer(chain)));
  return signed;
}

/** The same header again until something else than 503 comes back. */
async function sentAgain(signed: Signed): Promise<Answer> {
  for (const deadline = Date.now() + 60_000; ; await sleep(100)) {
    const answer = await pay(signed);
    if (answer.status !== 503 || Date.now() > deadline) return answer;
  }
}

/** One payment is in the pool, and the others wait for it together until the process is killed. */
async function killedOnceTheyShare(signed: readonly Signed[], at: () => Promise<unknown>): Promise<void> {
  const [first, ...others] = signed;
  await chain.client.setAutomine(false);
  const cutOff = (one: Signed) => pay(one).catch(() => null);
  const asked = [cutOff(first as Signed)];
  await expect.poll(pending, soon).toBe(1);
  asked.push(...others.map(cutOff));
  await at();
  await api.kill();
  await Promise.all(asked);
  await stage.endLeases();
  api = await stage.start(node);
}

async function expectAllBought(signed: readonly Signed[]): Promise<void> {
  await chain.client.setAutomine(true);
  await chain.mine();
  const answers = await Promise.all(signed.map(sentAgain));
  expect(answers.map(({ status, text }) => (status === 200 ? 200 : text))).toEqual(signed.map(() => 200));
  for (const one of signed) await chargedOnce(chain, one);
  const members = await owner.query("SELECT purpose FROM relay_member");
  expect(new Set(members.rows.map(({ purpose }) => purpose.toString("hex"))).size).toBe(members.rowCount);
}

describe("a process killed with SIGKILL charges each payment of a batch once", () => {
  test("when the batch is stored and not broadcast: another process broadcasts it", async () => {
    const signed = await signedBy(TOGETHER);
    const last = signed.at(-1) as Signed;
    const held = node.hold("eth_sendRawTransaction", last.authorization.from.slice(2));
    await killedOnceTheyShare(signed, () => held.reached);
    expect((await stored()).some(({ size }) => size > 1)).toBe(true);
    await expect.poll(pending, soon).toBeGreaterThan(1);
    await expectAllBought(signed);
  });

  test("when the batch is broadcast and not mined", async () => {
    const signed = await signedBy(TOGETHER);
    await killedOnceTheyShare(signed, () => expect.poll(pending, soon).toBeGreaterThan(1));
    await expectAllBought(signed);
  });

  test("when the batch is mined and nobody has looked yet", async () => {
    const signed = await signedBy(TOGETHER);
    const looking = node.hold("eth_getLogs", (signed.at(-1) as Signed).authorization.from.slice(2));
    await killedOnceTheyShare(signed, async () => {
      await expect.poll(pending, soon).toBeGreaterThan(1);
      await chain.client.setAutomine(true);
      await chain.mine();
      await looking.reached;
    });
    await expectAllBought(signed);
  });
});
