import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { startMortalNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { fundRelayer, startApiProcess } from "../../support/service/api-process.ts";
import { freshDatabase } from "../../support/service/database.ts";

const PAYERS = 64;
const PATIENT = { timeout: 60_000, interval: 500 };

const [chain, sepolia] = await Promise.all([
  forFile(startTestChain()),
  forFile(startTestChain({ network: "eip155:84532" })),
]);

interface NodeStatus {
  readonly rank: number;
  readonly ok: boolean;
}

test("Every one of 64 payers is served and charged once although the first node is killed in between", async () => {
  const [first, second, tester] = await Promise.all([
    forFile(startMortalNode(chain.rpcUrl)),
    forFile(startMortalNode(chain.rpcUrl)),
    forFile(startMortalNode(sepolia.rpcUrl)),
  ]);
  await fundRelayer(chain);
  // The test network's node is down from the start, which must not prevent anything.
  tester.kill();
  const api = await forFile(
    startApiProcess({
      database: await freshDatabase(),
      baseRpcUrl: `${first.url}, ${second.url}`,
      baseSepoliaRpcUrl: tester.url,
    }),
  );
  const status = async () => (await send(`${api.url}/status`)).body.chains as { ok: boolean; nodes: NodeStatus[] }[];
  const oks = async () => (await status()).map(({ ok, nodes }) => [ok, ...nodes.map((node) => node.ok)]);
  expect(await oks()).toEqual([
    [true, true, true],
    [false, false],
  ]);

  const payers = await Promise.all(Array.from({ length: PAYERS }, () => newPayer(chain)));
  const signed = await Promise.all(payers.map((payer) => signPayment(payer)));
  let served = 0;
  const paying = signed.map(async (payment) => {
    let answer = await post(`${api.url}/test/basic`, v2(payment));
    // On a 503 or 409, a client sends the same payment again.
    for (let again = 0; again < 20 && answer.status !== 200; again++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      answer = await post(`${api.url}/test/basic`, v2(payment));
    }
    served += 1;
    return answer;
  });
  await expect.poll(() => first.asked.includes("eth_sendRawTransaction") || served > 0, PATIENT).toBe(true);
  first.kill();
  const answers = await Promise.all(paying);
  expect(answers.map((answer) => answer.status)).toEqual(Array(PAYERS).fill(200));
  expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(PAYERS);
  for (const payment of signed) await chargedOnce(chain, payment);
  // The status is checked at most every two seconds.
  await expect.poll(oks, PATIENT).toEqual([
    [true, false, true],
    [false, false],
  ]);

  await Promise.all([first.revive(), tester.revive()]);
  await expect.poll(oks, PATIENT).toEqual([
    [true, true, true],
    [true, true],
  ]);
});
