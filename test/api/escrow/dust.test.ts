import { encodeFunctionData, type Hex, type LocalAccount, multicall3Abi } from "viem";
import { afterEach, expect, test, vi } from "vitest";
import { gasCharged, type PaymentInfo, SHARED_OUTCOME_GAS } from "../../../api/escrow/payment.ts";
import { createEscrowStore } from "../../../api/escrow/store.ts";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import snapshot from "../../../contracts/gas-snapshot.json" with { type: "json" };
import { payerAgnosticNonce, paymentId } from "../../../packages/escrow/src/payment-info.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deliverWithWindow, holdWithWindow } from "../../support/escrow/contest.ts";
import {
  deployEscrow,
  type EscrowScene,
  expectOutcome,
  type Held,
  hold,
  newMerchant,
  processOf,
} from "../../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { newPayer, signReceiveAuthorization } from "../../support/payments/signing.ts";
import { hexOf } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

// The effect of filling the escrow with many holds of the minimum amount.

vi.setConfig({ testTimeout: 180_000 });
const DUST = 300;
const HONEST = 10;
const LEAST = 10_000n;
/** One minute of Base blocks. */
const BLOCKS = 30;
const AT_ONCE = 20;

const chain = await forFile(startTestChain());
const scene: EscrowScene = { chain, escrow: await deployEscrow(chain) };
const config = { escrowAddresses: [scene.escrow.address] };
const service = await forFile(startService({ chain, jobs: false, config }));
const { pool, ...built } = await processOf(service);
const relaying = built.jobs.filter(({ name }) => name.startsWith("relay "));
afterEach(() => chain.client.setAutomine(true));

/** Creates holds of one payer for one merchant, in a few transactions. */
async function dustFor(merchant: LocalAccount): Promise<Pick<Held, "id" | "info">[]> {
  const { client, network } = chain;
  const { address } = scene.escrow;
  const payer = await newPayer(chain, LEAST * BigInt(DUST) + 1n);
  const [any] = [(await hold(scene, merchant.address, { maxAmount: LEAST })).info];
  const infos = Array.from(
    { length: DUST },
    (_, n): PaymentInfo => ({
      ...any,
      payer: payer.address.toLowerCase() as Hex,
      salt: BigInt(n + 1),
    }),
  );
  const place = { chainId: network.chainId, escrow: address };
  const calls = await Promise.all(
    infos.map(async (info) => {
      const nonce = payerAgnosticNonce(place, info);
      const validBefore = BigInt(info.preApprovalExpiry);
      const terms = { from: payer.address, to: address, value: LEAST, validAfter: 0n, validBefore, nonce };
      const args = [info, LEAST, address, await signReceiveAuthorization(payer, network, terms)] as const;
      const callData = encodeFunctionData({ abi: escrowAbi, functionName: "authorize", args });
      return { target: address, allowFailure: false, callData };
    }),
  );
  for (let from = 0; from < DUST; from += 100) {
    const some = calls.slice(from, from + 100);
    const data = encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [some] });
    const hash = await client.sendTransaction({ account: devAccount(2), to: MULTICALL3, data, gas: 14_000_000n });
    expect((await client.waitForTransactionReceipt({ hash })).status).toBe("success");
  }
  return infos.map((info) => ({ id: paymentId(place, info), info }));
}

test("Ten honest sales among 300 dust holds are released within one minute of blocks, and dust costs little gas", async () => {
  const attacker = newMerchant();
  const dust = await dustFor(attacker);
  for (let from = 0; from < DUST; from += AT_ONCE) {
    const some = dust.slice(from, from + AT_ONCE);
    const answers = await Promise.all(some.map((one) => deliver(service, attacker, { ...one, ...GOOD })));
    expect(answers.map(({ status }) => status)).toEqual(some.map(() => 200));
  }
  const sales: Held[] = [];
  while (sales.length < HONEST) {
    const merchant = newMerchant();
    const sale = await hold(scene, merchant.address);
    expect((await deliver(service, merchant, { ...sale, ...GOOD })).status).toBe(200);
    sales.push(sale);
  }

  await chain.client.setAutomine(false);
  const before = Number(await chain.client.getBlockNumber());
  const open = async () => (await pool.query("SELECT FROM escrow_task WHERE state = 'open'")).rowCount;
  // Mines a block whenever a transaction is pending, because only the order matters. The upkeep resends what the node
  // does not have.
  const turn = async () => {
    await built.escrow.settleDue();
    for (const { run } of relaying) await run();
    if ((await chain.client.getTxpoolStatus()).pending > 0) await chain.mine();
    return open();
  };
  await expect.poll(turn, { timeout: 120_000, interval: 50 }).toBe(0);

  const { rows } = await pool.query<{ amount: string; block: number; nonce: number }>(
    "SELECT t.amount, t.block_number::int AS block, r.nonce::int FROM escrow_task t JOIN relay r ON r.mined_hash = t.tx",
  );
  const isDust = ({ amount }: { readonly amount: string }) => BigInt(amount) === LEAST;
  const blocksOf = (dusty: boolean) => rows.filter((one) => isDust(one) === dusty).map(({ block }) => block - before);
  expect([blocksOf(true).length, blocksOf(false).length]).toEqual([DUST, HONEST]);
  expect(Math.max(...blocksOf(false))).toBeLessThanOrEqual(BLOCKS);
  const last = Math.max(...blocksOf(false));
  // Dust came first, but some of it must wait. Counted in transactions, because a slow machine sends several before a
  // block.
  const lastSale = Math.max(...rows.filter((one) => !isDust(one)).map(({ nonce }) => nonce));
  expect(rows.filter(isDust).filter(({ nonce }) => nonce <= lastSale).length).toBeLessThan(DUST);
  for (const sale of sales) await expectOutcome(scene, sale, "release");

  const sent = await pool.query<{ mined_hash: Buffer }>("SELECT mined_hash FROM relay");
  const receipts = await Promise.all(
    sent.rows.map(({ mined_hash }) => chain.client.getTransactionReceipt({ hash: hexOf(mined_hash) })),
  );
  const gas = receipts.reduce((sum, { gasUsed }) => sum + Number(gasUsed), 0);
  console.log(
    `${receipts.length} transactions, ${Math.round(gas / (DUST + HONEST))} gas an outcome, honest in block ${last}`,
  );
  expect(gas / (DUST + HONEST)).toBeLessThanOrEqual(35_000);
  // The daily gas is charged as it is used, minus the 5,000 per hold that the fees of dust cover.
  const account = Buffer.from(dust[0]?.info.payer.slice(2) ?? "", "hex");
  const spent = await pool.query<{ gas: string }>("SELECT gas FROM escrow_gas WHERE account = $1", [account]);
  const counted = Number(spent.rows[0]?.gas) / DUST;
  expect(counted).toBeGreaterThan(20_000);
  expect(counted).toBeLessThanOrEqual(30_000);
});

test("A payer whose fees cover no release gets a 429 once the daily gas is spent, while profitable releases continue", async () => {
  const escrowLimits = { minimum: 20_000n, payerGas: 100_000n, keeperGas: 0n };
  const strict = await startService({ chain, config: { ...config, escrowLimits } });
  try {
    const merchant = newMerchant();
    const by = await newPayer(chain);
    const sell = (maxAmount: bigint) => hold(scene, merchant.address, { maxAmount, by });
    const [little, small, other, second, third, large] = [
      await sell(19_999n),
      await sell(20_000n),
      await sell(20_000n),
      await sell(20_000n),
      await sell(20_000n),
      await sell(1_000_000n),
    ];
    expectProblem(await deliver(strict, merchant, { ...little, ...GOOD }), 422, "unacceptable");
    // Stores a hold as if from before the minimum was raised.
    const store = createEscrowStore(await forFile(connect(strict.config.databaseUrl)));
    const place = { network: "eip155:8453", contract: scene.escrow.address, block: 1, refundableFrom: 1 } as const;
    expect(await store.timeOut({ ...little, ...place }, { gas: 0n, most: 0n })).toBe("stored");
    expectProblem(await deliver(strict, merchant, { ...little, ...GOOD }), 409, "escrow_over");
    expect((await deliver(strict, merchant, { ...small, ...GOOD })).status).toBe(200);
    expect((await deliver(strict, merchant, { ...other, ...EMPTY })).status).toBe(200);
    expect((await deliver(strict, merchant, { ...second, ...GOOD })).status).toBe(200);
    const refused = await deliver(strict, merchant, { ...third, ...GOOD });
    expectProblem(refused, 429, "payer_gas_spent");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    // An earlier decision is still returned.
    expect((await deliver(strict, merchant, { ...small, ...GOOD })).status).toBe(200);
    // This hold's fee pays for ten releases, so there is room again.
    expect((await deliver(strict, merchant, { ...large, ...GOOD })).status).toBe(200);
    expect((await deliver(strict, merchant, { ...third, ...GOOD })).status).toBe(200);
    for (const one of [small, second, third, large]) await expectOutcome(scene, one, "release");
    await expectOutcome(scene, other, "refund");
    const { limits } = (await (await fetch(`${strict.url}/escrow?format=json`)).json()) as { limits: object };
    expect(limits).toMatchObject({ minimum_amount: "20000", payer_gas_a_day: "100000" });
  } finally {
    await strict.stop();
  }
});

test("A competitor's holds are charged to its own wallet and close no shop, and a release that covers its cost is never refused", async () => {
  const strict = await startService({
    chain,
    config: { ...config, escrowLimits: { minimum: LEAST, payerGas: 40_000n, keeperGas: 0n } },
  });
  try {
    const merchant = newMerchant();
    const by = await newPayer(chain);
    const bought = (maxAmount: bigint) => hold(scene, merchant.address, { maxAmount, by });
    const refused = [{ ...GOOD, status: 422 }, { ...GOOD, status: 400 }, { ...GOOD, status: 500 }, EMPTY];
    for (const answer of refused) {
      const { status, body } = await deliver(strict, merchant, { ...(await bought(1_000_000n)), ...answer });
      expect([status, body.decision]).toEqual([200, "refund"]);
    }
    const first = await bought(20_000n);
    expect((await deliver(strict, merchant, { ...first, ...GOOD })).status).toBe(200);
    for (const amount of [LEAST, 20_000n, 69_999n])
      expectProblem(await deliver(strict, merchant, { ...(await bought(amount)), ...GOOD }), 429, "payer_gas_spent");
    // In a full transaction, the fee on 0.07 USDC pays for a release.
    const enough = await bought(70_000n);
    expect((await deliver(strict, merchant, { ...enough, ...GOOD })).status).toBe(200);
    const honest = await hold(scene, merchant.address, { maxAmount: 20_000n });
    expect((await deliver(strict, merchant, { ...honest, ...GOOD })).status).toBe(200);
    const contestable = await holdWithWindow(scene, merchant);
    expect((await deliverWithWindow(strict, merchant, { held: contestable })).status).toBe(200);
    for (const one of [first, enough, honest]) await expectOutcome(scene, one, "release");
  } finally {
    await strict.stop();
  }
});

test("A fee that counts as covering a release covers its share of a full transaction", () => {
  expect(snapshot.outcomes.batch.release[50]).toBeLessThanOrEqual(Number(SHARED_OUTCOME_GAS));
  const charged = (amount: bigint, isContestable = false) => gasCharged({ decision: "release", isContestable }, amount);
  expect([69_999n, 70_000n, 100_000n, 100_100n].map((amount) => charged(amount))).toEqual([15_050n, 0n, 0n, -50n]);
  expect([69_999n, 70_000n, 100_100n].map((amount) => charged(amount, true))).toEqual([15_050n, 0n, 0n]);
});
