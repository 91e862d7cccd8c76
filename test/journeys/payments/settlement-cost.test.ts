import { type Hex, numberToHex, pad } from "viem";
import { beforeEach, expect, test } from "vitest";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const ORACLE = "0x420000000000000000000000000000000000000f";
/** Longer than what the chain asks is remembered. */
const FORGOTTEN_MS = 2_100;

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
const { chain } = base;
// A settlement costs 100,000 gas at 0.006 gwei, 0.0018 USDC: 0.72% of 0.25 USDC.
const plan = { chain, now: base.now };
const strict = await forFile(
  startService({ ...plan, config: { rpcUrls: base.rpcUrls, costCeiling: { percent: 5, ethUsd: 3_000 } } }),
);
const forgotten = () => new Promise((resolve) => setTimeout(resolve, FORGOTTEN_MS));
const buy = (signed: Signed) => post(`${strict.url}/test/basic`, v2(signed));
/** What the status says a settlement on Base costs, in wei. */
async function shown({ url }: { readonly url: string }): Promise<number> {
  const [sender] = (await send(`${url}/status`)).body.senders as readonly { readonly cost_wei: string }[];
  return Number(sender?.cost_wei);
}
/** Per settlement, on a quiet day; the base fee moves a little. */
const QUIET_WEI = 6e11;

let signed: Signed;

beforeEach(async () => {
  await base.fees(1);
  await chain.client.setCode({ address: ORACLE, bytecode: "0x" });
  signed = await signPayment(await newPayer(chain));
});

test("a settlement that costs less than its share of the price is submitted", async () => {
  expect((await buy(signed)).status).toBe(200);
  await chargedOnce(chain, signed);
  expect(Math.abs((await shown(strict)) / QUIET_WEI - 1)).toBeLessThan(0.02);
});

test("while gas is fifty times dearer it waits: 503, nothing is submitted; the same header is settled afterwards", async () => {
  await base.fees(50);
  await forgotten();
  base.calls.reset();
  const answer = await buy(signed);
  expectProblem(answer, 503, "payment_pending");
  expect(answer.headers.get("retry-after")).not.toBeNull();
  expect(base.calls.byMethod()).not.toHaveProperty("eth_sendRawTransaction");
  await nothingCharged(chain, signed.authorization.from);
  expect(strict.logged.some((line) => line.includes("more than 5%"))).toBe(true);
  await base.fees(1);
  await forgotten();
  expect((await buy(signed)).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("the fee for data on the parent chain counts, where there is an oracle for it", async () => {
  const fee = 5n * 10n ** 12n;
  // PUSH32 fee; MSTORE at 0; RETURN 32 bytes
  const bytecode: Hex = `0x7f${pad(numberToHex(fee), { size: 32 }).slice(2)}60005260206000f3`;
  await chain.client.setCode({ address: ORACLE, bytecode });
  // Nodes know it from the next block on.
  await base.pass(0.1);
  const fresh = await startService({
    ...plan,
    config: { rpcUrls: base.rpcUrls, costCeiling: { percent: 5, ethUsd: 3_000 } },
    jobs: false,
  });
  try {
    const answer = await post(`${fresh.url}/test/basic`, v2(signed));
    expectProblem(answer, 503, "payment_pending");
    await nothingCharged(chain, signed.authorization.from);
    expect(Math.abs((await shown(fresh)) / (QUIET_WEI + Number(fee)) - 1)).toBeLessThan(0.02);
  } finally {
    await fresh.stop();
  }
});
