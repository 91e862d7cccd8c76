import { parseAbi } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { blocksFrom } from "../../support/chain/blocks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { burningWallet, SIGNS } from "../../support/payments/wallets.ts";
import { binary, freshDatabase } from "../../support/service/database.ts";
import { RELAYER, startService } from "../../support/service/service.ts";

const ERC20 = parseAbi(["function transfer(address to, uint256 value) returns (bool)"]);
const ELSEWHERE = "0x000000000000000000000000000000000000dEaD";
const soon = { timeout: 10_000, interval: 20 };
/** Long enough for all payments of a test to join the forming batch. */
const WAIT_MS = 1_500;

const chain = await forFile(startTestChain());
const database = await freshDatabase();
const config = { batches: { most: 50, waitMs: WAIT_MS } };
const service = await forFile(startService({ chain, database, config }));
const buy = (signed: Signed) => post(`${service.url}/test/basic`, v2(signed));

const USDC = chain.network.usdc.address;
const BATCH = SETTLEMENT_BATCH.address.toLowerCase();

let first: bigint;
beforeEach(async () => {
  first = (await chain.client.getBlockNumber()) + 1n;
});
afterEach(() => chain.client.setAutomine(true));

/** Returns the relayer's transactions of this test, in order. */
async function sent() {
  const blocks = await blocksFrom(chain, Number(first));
  const ours = blocks
    .flatMap(({ transactions }) => transactions)
    .filter(({ from }) => from.toLowerCase() === RELAYER.address.toLowerCase());
  return Promise.all(
    ours.map(async ({ hash, to }) => ({ to, gas: (await chain.client.getTransactionReceipt({ hash })).gasUsed })),
  );
}

const pending = async () => (await chain.client.getTxpoolStatus()).pending;

/**
 * Keeps one payment unmined while the others arrive, so that the others share a transaction. Runs `meanwhile` while
 * both transactions are in the pool, then mines them. Returns the responses to the others.
 */
async function paidTogether(others: readonly Signed[], meanwhile: () => Promise<unknown> = async () => undefined) {
  const alone = await signPayment(await newPayer(chain));
  await chain.client.setAutomine(false);
  const before = buy(alone);
  await expect.poll(pending, soon).toBe(1);
  const answers = others.map(buy);
  await expect.poll(pending, soon).toBe(2);
  await meanwhile();
  await chain.client.setAutomine(true);
  await chain.mine();
  expect((await before).status).toBe(200);
  return Promise.all(answers);
}

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);
const newPayers = async (count: number) => {
  const payers = [];
  while (payers.length < count) payers.push(await newPayer(chain));
  return payers;
};

/** Checks that the four neighbors of a failing payment are charged. Returns the failing payment and its response. */
async function withNeighbors(payer: Awaited<ReturnType<typeof newPayer>>, meanwhile: () => Promise<unknown>) {
  const neighbors = await newPayers(4);
  const signed = await Promise.all(
    [...neighbors.slice(0, 2), payer, ...neighbors.slice(2)].map((one) => signPayment(one)),
  );
  const answers = await paidTogether(signed, meanwhile);
  const [bad] = answers.splice(2, 1);
  const [own] = signed.splice(2, 1);
  if (bad === undefined || own === undefined) throw new Error("there are five payments");
  expect(statuses(answers)).toEqual([200, 200, 200, 200]);
  for (const one of signed) await chargedOnce(chain, one);
  return { answer: bad, signed: own };
}

test("Payments that arrive while another is unmined share a transaction, which costs less gas per payment", async () => {
  const signed = await Promise.all((await newPayers(10)).map((payer) => signPayment(payer)));
  expect(statuses(await paidTogether(signed))).toEqual(signed.map(() => 200));
  for (const one of signed) await chargedOnce(chain, one);
  const [alone, batch, ...more] = await sent();
  expect([alone?.to, batch?.to, more.length]).toEqual([USDC.toLowerCase(), BATCH, 0]);
  expect(Number(batch?.gas) / 10 / Number(alone?.gas)).toBeLessThan(0.7);
});

test("Payments of one payer share a transaction as far as its balance covers them", async () => {
  const payer = await newPayer(chain, 3n * PRICES.basic);
  const signed = await Promise.all([1, 2, 3].map(() => signPayment(payer)));
  expect(statuses(await paidTogether(signed))).toEqual([200, 200, 200]);
  const nonces = (await settlements(chain, payer.address)).map(({ nonce }) => nonce);
  expect(nonces.toSorted()).toEqual(signed.map(({ authorization }) => authorization.nonce).toSorted());
});

describe("A payer whose payment fails within a batch", () => {
  /** Empties the payer's balance in a transaction that is mined before ours. */
  const movesAway = async (payer: Awaited<ReturnType<typeof newPayer>>) => {
    await chain.setBalance(payer.address, 10n ** 18n);
    await chain.client.writeContract({
      account: payer,
      address: USDC,
      abi: ERC20,
      functionName: "transfer",
      args: [ELSEWHERE, 9_900_000n],
      nonce: 0,
      gas: 100_000n,
      maxPriorityFeePerGas: 10n ** 12n,
      maxFeePerGas: 10n ** 13n,
    });
  };

  test("A payer whose payment fails in a batch gets the reason and then pays alone, and its neighbors are charged as usual", async () => {
    const payer = await newPayer(chain);
    const { answer, signed } = await withNeighbors(payer, () => movesAway(payer));
    expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
    await nothingCharged(chain, payer);
    await chain.fund(payer.address, 10_000_000n);
    expect(expectPaymentRequired(await buy(signed))).toMatch(/mined and reverted/);
    const once = (await sent()).length;
    const again = await Promise.all([payer, ...(await newPayers(2))].map((one) => signPayment(one)));
    expect(statuses(await paidTogether(again.slice(1)))).toEqual([200, 200]);
    await chain.client.setAutomine(true);
    expect((await buy(again[0] as Signed)).status).toBe(200);
    expect((await sent()).slice(once).map(({ to }) => to)).toEqual([USDC.toLowerCase(), BATCH, USDC.toLowerCase()]);
  });

  test("A batch does not call a payer that got code after its simulation", async () => {
    const payer = await newPayer(chain);
    const burner = await newPayer(chain, 0n);
    await chain.client.setCode({
      address: burner.address,
      bytecode: burningWallet(SIGNS["transactions have an origin, simulations none"]),
    });
    const delegation = `0xef0100${burner.address.slice(2)}` as const;
    const { answer } = await withNeighbors(payer, () =>
      chain.client.setCode({ address: payer.address, bytecode: delegation }),
    );
    expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
    const [, batch] = await sent();
    expect(batch?.gas).toBeLessThan(400_000n);
  });

  test("A payer with three failures within an hour gets 429 until the first is an hour old", async () => {
    const payer = await newPayer(chain);
    const change = (text: string) =>
      withClient(database.ownerUrl, (client) => client.query(text, [binary(payer.address)]));
    const next = async () => buy(await signPayment(payer));
    const three = await Promise.all([1, 2, 3].map(() => signPayment(payer)));
    for (const answer of await paidTogether(three, () => movesAway(payer)))
      expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
    await chain.fund(payer.address, 10_000_000n);
    const refused = await next();
    expectProblem(refused, 429, "payer_refused");
    expect(refused.body.detail).toMatch(/^3 payments .* not stored or charged.* sign a new one\.$/);
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(3_000);
    expect(seconds).toBeLessThanOrEqual(3_600);
    expect((await change("SELECT FROM payment WHERE payer = $1")).rowCount).toBe(3);
    const [other] = await newPayers(1);
    expect((await buy(await signPayment(other as typeof payer))).status).toBe(200);
    // A payer is not blamed when the whole transaction reverted.
    const blame = (reverted: boolean) =>
      change(`UPDATE relay SET reverted = ${reverted} FROM relay_member, payment
        WHERE relay_id = relay.id AND purpose = digest AND payer = $1 AND reason = 'reverted'`);
    await blame(true);
    expect((await next()).status).toBe(200);
    await blame(false);
    expect((await next()).status).toBe(429);
    await change(`UPDATE payment SET state_changed_at = state_changed_at - interval '1 h'
      WHERE payer = $1 AND state_changed_at = (SELECT min(state_changed_at) FROM payment WHERE payer = $1 AND reason = 'reverted')`);
    expect((await next()).status).toBe(200);
  });
});
