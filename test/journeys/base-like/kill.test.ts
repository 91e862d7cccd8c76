import { expect, test, vi } from "vitest";
import { HALT_MINUTES } from "../../support/base-like/profiles.ts";
import { startChainLikeBase } from "../../support/base-like/test-chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import type { ApiProcess } from "../../support/service/api-process.ts";
import { startApiStageOn } from "../../support/service/api-stage.ts";

// A process has the real clock: this chain starts an hour in the past and never gets ahead of it.

vi.setConfig({ testTimeout: 90_000 });

const stage = await forFile(startApiStageOn(startChainLikeBase(60)));
const { chain } = stage;
const { base } = chain;
const start = () => stage.start({ url: base.url });
let api = await start();

test("a process killed while Base is halted, and one while its pool has forgotten: one charge, and the result", async () => {
  const payer = await newPayer(chain);
  const signed = await signPayment(payer, { validBefore: unixNow() + 7_200n });
  const pay = (at: ApiProcess): Promise<Answer> => post(`${at.url}/test/basic`, v2(signed));
  const restart = async () => {
    await api.kill();
    await stage.endLeases();
    api = await start();
  };

  base.halt();
  const lost = pay(api).then(
    ({ status }) => status,
    () => "cut off",
  );
  await eventually(() => base.pool.waiting().length, 1);
  await base.pass(HALT_MINUTES);
  await restart();
  expect(await lost).toBe("cut off");
  await nothingCharged(chain, payer);

  base.pool.forget();
  const again = pay(api).catch(() => null);
  await eventually(() => base.pool.waiting().length, 1);
  await restart();
  expect(await again).toBeNull();
  await base.resume();
  let answer = await pay(api);
  for (; answer.status === 503; answer = await pay(api)) expectProblem(answer, 503, "payment_pending");
  expect(answer.status).toBe(200);
  await base.pass(16);
  const replay = await pay(api);
  expect([replay.status, replay.text]).toEqual([200, answer.text]);
  await chargedOnce(chain, signed);
});
