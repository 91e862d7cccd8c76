import { encodeFunctionData, type LocalAccount } from "viem";
import { afterAll, describe, expect, test, vi } from "vitest";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { BASE, type Profile } from "../support/base-like/profiles.ts";
import { type BaseStage, resultOf, startBaseStage } from "../support/base-like/stage.ts";
import { rawToUsdc } from "../support/chain/blocks.ts";
import { askNode } from "../support/chain/rpc.ts";
import { eventually } from "../support/eventually.ts";
import { expectPaymentRequired } from "../support/payments/expectations.ts";
import { nothingCharged, paymentsOnChain } from "../support/payments/on-chain.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { PAY_TO } from "../support/service/environment.ts";

// Many concurrent payments through lagging nodes, which lag independently or all behind their receipts.

vi.setConfig({ testTimeout: 90_000 });
const ELSEWHERE = "0x000000000000000000000000000000000000dEaD";
const PAYERS = 8;
const EACH = 4;

const stages: BaseStage[] = [];
afterAll(() => Promise.all(stages.map((stage) => stage.stop())));

/** A service with batches, and payers with several signed payments each. */
async function scene(profile: Profile) {
  const at = await startBaseStage({ profile });
  stages.push(at);
  const { base } = at;
  const payers: LocalAccount[] = [];
  while (payers.length < PAYERS) payers.push(await newPayer(base.chain));
  await base.caughtUp();
  const validBefore = base.unixNow() + 3_600n;
  const signed = await Promise.all(
    payers.flatMap((payer) => Array.from({ length: EACH }, () => signPayment(payer, { validBefore }))),
  );
  return { at, base, payers, signed };
}

/** Expects one result per payment, exactly these payments on chain, and batches among their transactions. */
async function expectBoughtOnce(at: BaseStage, signed: readonly Signed[]): Promise<void> {
  const answers = await Promise.all(signed.map(async (one) => (await resultOf(at, one)).text));
  expect(new Set(answers).size).toBe(signed.length);
  const paid = (await paymentsOnChain({ chain: at.base.chain.client })).filter(({ to }) => to.toLowerCase() === PAY_TO);
  expect(paid.map(({ nonce }) => nonce).sort()).toEqual(signed.map(({ authorization }) => authorization.nonce).sort());
  expect(new Set(paid.map(({ transaction }) => transaction)).size).toBeLessThan(signed.length);
  expect(await Promise.all(signed.map(async (one) => (await at.pay(one)).text))).toEqual(answers);
}

describe.concurrent("several payers with dozens of concurrent payments", () => {
  test("Each payment is charged and served once while nodes lag by 0, 120, and 40 ms", async () => {
    const { at, signed } = await scene(BASE);
    await expectBoughtOnce(at, signed);
  });

  test("If receipts arrive before their blocks, each payment is still charged and served once, and only the failing ones fail", async () => {
    // Preconfirmations: docs.base.org, "Flashblocks", every 200 ms.
    const { at, base, payers, signed } = await scene({ ...BASE, backends: [{ lagMs: 200 }, { lagMs: 360 }] });
    const [mover] = payers as [LocalAccount];
    const ahead = askNode(base.chain.rpcUrl);
    base.become((call, pass) => (call.method === "eth_getTransactionReceipt" ? ahead(call) : pass(call)));
    await base.chain.setBalance(mover.address, 10n ** 18n);
    const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [ELSEWHERE, 9_900_000n] });
    const raw = await rawToUsdc(base.chain, { by: mover, data });
    base.halt();
    const answers = signed.map(at.pay);
    await eventually(at.members, signed.length);
    await base.chain.client.sendRawTransaction({ serializedTransaction: raw });
    await base.resume();
    await Promise.all(answers);
    for (const one of signed.slice(0, EACH))
      expect(expectPaymentRequired(await at.pay(one))).toMatch(/mined and reverted/);
    await nothingCharged(base.chain, mover);
    await expectBoughtOnce(at, signed.slice(EACH));
  });
});
