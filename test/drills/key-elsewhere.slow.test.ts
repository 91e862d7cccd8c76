import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../support/payments/signing.ts";
import { PAY_TO } from "../support/service/environment.ts";
import { ALONE, RELAYER, startService } from "../support/service/service.ts";

// docs/drills.md, "The sender's key used elsewhere".

const PATIENT = { timeout: 60_000, interval: 200 };
const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, config: ALONE }));
const account = privateKeyToAccount(RELAYER.key);

test("Transactions sent elsewhere with the facilitator's key delay payments, but each is still charged once", async () => {
  /** A wallet, a script, or a second installation that takes nonces at the same time. */
  const elsewhere = (async () => {
    let sent = 0;
    for (let attempt = 0; attempt < 30; attempt++) {
      const hash = await chain.client.sendTransaction({ account, to: PAY_TO, value: 1n }).catch(() => null);
      if (hash !== null) sent++;
      await new Promise((done) => setTimeout(done, 40));
    }
    return sent;
  })();
  const validBefore = unixNow() + 900n;
  const signed = await Promise.all(
    Array.from({ length: 12 }, async () => signPayment(await newPayer(chain), { validBefore })),
  );
  const answers = await Promise.all(signed.map((one) => post(`${service.url}/test/basic`, v2(one))));
  expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
  expect(await elsewhere).toBeGreaterThan(10);
  for (const one of signed) {
    const again = async () => {
      await chain.mine(1);
      return (await post(`${service.url}/test/basic`, v2(one))).status;
    };
    await expect.poll(again, PATIENT).toBe(200);
    await chargedOnce(chain, one);
  }
  expect((await send(`${service.url}/status`)).body).toMatchObject({ settlement: { ok: true } });
});
