import { type Hex, numberToHex, pad } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { assertWorthwhile } from "../../../api/payments/settle/simulation.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { passTime } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { type Relaying, startRelaying } from "../../support/payments/relaying.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const ORACLE = "0x420000000000000000000000000000000000000f";
/** Longer than the chain's fees are cached. */
const FORGOTTEN_MS = 2_100;

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
const { chain } = base;
// A settlement costs 100,000 gas at 0.006 gwei, which is 0.0018 USDC, less than a hundredth of the price.
const plan = { chain, now: base.now };
const strict = await forFile(
  startService({ ...plan, config: { rpcUrls: base.rpcUrls, costCeiling: { percent: 5, ethUsd: 3_000 } } }),
);
const forgotten = () => passTime(FORGOTTEN_MS);
const buy = (signed: Signed) => post(`${strict.url}/test/basic`, v2(signed));
/** Returns the cost of a settlement on Base from /status, in wei. */
async function shown({ url }: { readonly url: string }): Promise<number> {
  const [sender] = (await send(`${url}/status`)).body.senders as readonly { readonly cost_wei: string }[];
  return Number(sender?.cost_wei);
}
/** The approximate cost per settlement at normal fees. */
const QUIET_WEI = 6e11;

let signed: Signed;

beforeEach(async () => {
  await base.fees(1);
  await chain.client.setCode({ address: ORACLE, bytecode: "0x" });
  signed = await signPayment(await newPayer(chain));
});

test("A settlement that costs less than its share of the price is submitted", async () => {
  expect((await buy(signed)).status).toBe(200);
  await chargedOnce(chain, signed);
  expect(Math.abs((await shown(strict)) / QUIET_WEI - 1)).toBeLessThan(0.02);
});

test("A payment gets 503 and is not submitted while gas costs fifty times as much, and the same header settles afterwards", async () => {
  await base.fees(50);
  forgotten();
  base.calls.reset();
  const answer = await buy(signed);
  expectProblem(answer, 503, "payment_pending");
  expect(answer.headers.get("retry-after")).not.toBeNull();
  expect(base.calls.byMethod()).not.toHaveProperty("eth_sendRawTransaction");
  await nothingCharged(chain, signed.authorization.from);
  expect(strict.logged.some((line) => line.includes("more than 5%"))).toBe(true);
  await base.fees(1);
  forgotten();
  expect((await buy(signed)).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("By default a payment costs at most half of its price, even if a node suggests a tip of 1,000 gwei", async () => {
  const plain = await startService({ ...plan, config: { rpcUrls: base.rpcUrls }, jobs: false });
  base.become(async (call, pass) =>
    call.method === "eth_maxPriorityFeePerGas" ? { ...(await pass(call)), result: "0xe8d4a51000" } : pass(call),
  );
  try {
    expect((await post(`${plain.url}/test/basic`, v2(signed))).status).toBe(200);
    const [{ transaction } = { transaction: "0x" as Hex }] = await settlements(chain, signed.authorization.from);
    const { gasUsed, effectiveGasPrice } = await chain.client.getTransactionReceipt({ hash: transaction });
    const costInUsdc = (gasUsed * effectiveGasPrice * 3_000n) / 10n ** 12n;
    expect(costInUsdc * 2n).toBeLessThanOrEqual(signed.authorization.value);
  } finally {
    base.become(null);
    await plain.stop();
  }
});

/** Makes the parent chain charge this fee for a payment's data. */
async function chargeForData(fee: bigint): Promise<void> {
  // PUSH32 fee; MSTORE at 0; RETURN 32 bytes
  const bytecode: Hex = `0x7f${pad(numberToHex(fee), { size: 32 }).slice(2)}60005260206000f3`;
  await chain.client.setCode({ address: ORACLE, bytecode });
  // Nodes see the new code from the next block on.
  await base.pass(0.1);
}

describe("The cost of one settlement", () => {
  let relaying: Relaying;
  beforeEach(async () => {
    relaying = await startRelaying(base.url);
    return async () => {
      vi.restoreAllMocks();
      base.become(null);
      await relaying.stop();
    };
  });

  test("A settlement may cost exactly its share of the price and not one atomic unit more", async () => {
    const { relayer } = relaying;
    const ceiling = { percent: 5, ethUsd: 3_000 };
    const cost = ((await relayer.costWei()) * 3_000n) / 10n ** 12n;
    expect(cost).toBeGreaterThan(1_000n);
    await assertWorthwhile(relayer, ceiling, cost * 20n);
    await expect(assertWorthwhile(relayer, ceiling, cost * 20n - 1n)).rejects.toThrow(/more than 5%/);
  });

  test("The parent chain's data fee counts where the chain has an oracle for it", async () => {
    const fee = 5n * 10n ** 12n;
    await chargeForData(fee);
    expect(Math.abs(Number(await relaying.another().costWei()) / (QUIET_WEI + Number(fee)) - 1)).toBeLessThan(0.02);
  });
});
