import { expect, test } from "vitest";
import { startHoldingNode } from "../support/chain/nodes.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce, nothingCharged } from "../support/payments/on-chain.ts";
import { post, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment } from "../support/payments/signing.ts";
import { startApiStage } from "../support/service/api-process.ts";
import { clockOffBy } from "../support/service/clock.ts";

// docs/drills.md, "A clock that is off".

const MINUTE = 60_000;
const PATIENT = { timeout: 30_000, interval: 200 };
const stage = await forFile(startApiStage());
const node = await forFile(startHoldingNode(stage.chain));
const right = await stage.start(node);

test.each([
  ["3 minutes ahead", 3 * MINUTE],
  ["3 minutes behind", -3 * MINUTE],
  ["an hour ahead", 60 * MINUTE],
  ["an hour behind", -60 * MINUTE],
])("A process whose clock is %s sells or rejects, and another process sells what it rejected", async (_, offset) => {
  const wrong = await stage.start(node, clockOffBy(offset));
  const signed = await signPayment(await newPayer(stage.chain));
  const answer = await post(`${wrong.url}/test/basic`, v2(signed));
  expect([200, 402, 503]).toContain(answer.status);
  if (answer.status === 402) await nothingCharged(stage.chain, signed.authorization.from);
  // The same header, at a process with the right clock.
  await expect.poll(async () => (await post(`${right.url}/test/basic`, v2(signed))).status, PATIENT).toBe(200);
  await chargedOnce(stage.chain, signed);
  // The process with the wrong clock replays the sale byte for byte.
  const [one, other] = [
    await post(`${right.url}/test/basic`, v2(signed)),
    await post(`${wrong.url}/test/basic`, v2(signed)),
  ];
  expect([other.status, other.text]).toEqual([one.status, one.text]);
  await wrong.stop();
});
