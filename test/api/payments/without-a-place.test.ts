import { expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { thinking } from "../../support/payments/wallets.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const database = await freshDatabase();
const service = await forFile(startService({ chain, database }));
const buy = (signed: Signed) => post(`${service.url}/test/basic`, v2(signed));

test("a payment without a place is a 503 and stays received; the same header settles once there is one", async () => {
  const signed = await Promise.all(
    Array.from({ length: 7 }, async () => {
      const payer = await newPayer(chain);
      await chain.client.setCode({ address: payer.address, bytecode: thinking(1) });
      return signPayment(payer);
    }),
  );
  await chain.client.setAutomine(false);
  const answers = signed.map(buy);
  const first = Promise.all(answers);
  first.catch(() => undefined);
  const early: Answer[] = [];
  for (const answer of answers) void answer.then((one) => early.push(one));
  await expect.poll(() => early.length, { timeout: 30_000 }).toBe(3);
  for (const answer of early) {
    expectProblem(answer, 503, "payment_pending");
    expect(answer.body.detail).toMatch(/was not sent, and nothing was charged: .* Do not sign again/);
  }
  const states = await withClient(database.ownerUrl, (client) =>
    client.query(
      "SELECT state, lease_token, encrypted_signature, count(*)::int FROM payment GROUP BY 1, 2, 3 HAVING state = 'received'",
    ),
  );
  expect(states.rows).toEqual([{ state: "received", lease_token: null, encrypted_signature: null, count: 3 }]);
  await chain.client.setAutomine(true);
  await chain.mine();
  expect((await first).filter(({ status }) => status === 200).length).toBe(4);
  const again = await Promise.all(signed.map(buy));
  expect(again.map(({ status }) => status)).toEqual(signed.map(() => 200));
  for (const one of signed) await chargedOnce(chain, one);
}, 90_000);
