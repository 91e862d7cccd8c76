import { encodeFunctionData, type Hex, type LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import { failedPlaces } from "../../../api/payments/settle/settlement-batch.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { anotherTransaction, rawOf, rawToUsdc, reorganize } from "../../support/chain/blocks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signCancellation, signPayment } from "../../support/payments/signing.ts";
import { RELAYER, startService } from "../../support/service/service.ts";

describe("Reorganizations", async () => {
  // A batch is mined, its block is reorganized away, and the same batch is mined again with different failing calls.

  const ELSEWHERE = "0x000000000000000000000000000000000000dEaD";
  const TOGETHER = 5;
  const soon = { timeout: 30_000, interval: 50 };

  const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
  // A batch is sent as soon as five payments wait.
  const config = { batches: { most: TOGETHER, waitMs: 10_000 } };
  const service = await forFile(startService({ chain, config }));
  const { client } = chain;
  // anvil knows the state of loaded blocks only at its head, so the finalized block must be one that it mined.
  await chain.mine(10);

  const buy = (signed: Signed): Promise<Answer> => post(`${service.url}/test/basic`, v2(signed));
  const pending = async () => (await client.getTxpoolStatus()).pending;
  const sentByUs = () => client.getTransactionCount({ address: RELAYER.address });
  const recordOf = async (answer: Answer) => (await send(String(answer.body.cert_url))).body;

  /** Returns five payments of a batch and the transactions that make the second, third, and fourth fail. */
  async function scene() {
    const payers: LocalAccount[] = [];
    while (payers.length < TOGETHER) payers.push(await newPayer(chain));
    const [, moving, , canceling] = payers as [LocalAccount, LocalAccount, LocalAccount, LocalAccount];
    await chain.setBalance(moving.address, 10n ** 18n);
    await chain.mine();
    const signed = await Promise.all(payers.map((payer) => signPayment(payer)));
    const [, , copied, canceled] = signed as [Signed, Signed, Signed, Signed];
    const { nonce } = canceled.authorization;
    const cancellation = await signCancellation(canceling, chain.network, { authorizer: canceling.address, nonce });
    const [transfer, cancel] = [
      encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [ELSEWHERE, 9_900_000n] }),
      encodeFunctionData({
        abi: USDC_ABI,
        functionName: "cancelAuthorization",
        args: [canceling.address, nonce, cancellation],
      }),
    ];
    const spoiled: readonly Hex[] = [
      await rawToUsdc(chain, { by: moving, data: transfer }),
      await anotherTransaction(chain, copied),
      await rawToUsdc(chain, { by: devAccount(6), data: cancel }),
    ];
    return { signed: signed as [Signed, Signed, Signed, Signed, Signed], spoiled };
  }

  /** Mines the payments as one batch, in a block with an earlier payment and with the `competing` transactions. */
  async function minedTogether(signed: readonly Signed[], competing: readonly Hex[] = []) {
    const before = await signPayment(await newPayer(chain));
    await client.setAutomine(false);
    const first = buy(before);
    await expect.poll(pending, soon).toBe(1);
    const answers = signed.map(buy);
    await expect.poll(pending, soon).toBe(2);
    for (const raw of competing) await client.sendRawTransaction({ serializedTransaction: raw });
    await chain.mine();
    const { transactions } = await client.getBlock({ includeTransactions: true });
    await client.setAutomine(true);
    expect((await first).status).toBe(200);
    const ours = transactions.filter(({ from }) => from.toLowerCase() === RELAYER.address.toLowerCase());
    const [alone, batch] = await Promise.all(ours.map(({ hash }) => rawOf(chain, hash)));
    const hash = ours[1]?.hash ?? "0x";
    const failed = async () => failedPlaces(await client.getTransactionReceipt({ hash })).length;
    return { answers, hash, failed, again: [alone, batch] as Hex[] };
  }

  /** Replaces the last block by one with these transactions in this order. */
  const minedAgain = (raws: readonly Hex[]) =>
    reorganize(
      chain,
      1,
      raws.map((raw) => [raw, 0] as const),
    );

  async function bought(signed: Signed): Promise<Answer> {
    const answers: Answer[] = [];
    const status = async () => {
      answers.push(await buy(signed));
      return answers.at(-1)?.status;
    };
    await expect.poll(status, soon).not.toBe(503);
    const answer = answers.at(-1) as Answer;
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("cert_url")]);
    return answer;
  }

  test("Calls that failed and then settle when the batch is mined again are charged once, and the same header gets its result", async () => {
    const { signed, spoiled } = await scene();
    const [, moved, copied, canceled] = signed;
    const { answers, hash, failed, again } = await minedTogether(signed, spoiled);
    expect(await failed()).toBe(3);
    const [one, reverted, paid, consumed, five] = (await Promise.all(answers)) as [
      Answer,
      Answer,
      Answer,
      Answer,
      Answer,
    ];
    expect([one.status, paid.status, five.status]).toEqual([200, 200, 200]);
    expect(expectPaymentRequired(reverted)).toMatch(/mined and reverted/);
    expectProblem(consumed, 503, "payment_pending");
    const count = await sentByUs();

    await minedAgain(again);
    expect(await failed()).toBe(0);
    for (const each of signed) await chargedOnce(chain, each);
    const late = [await bought(moved), await bought(canceled)];
    await chain.finalize();
    await expect.poll(async () => (await recordOf(paid)).settlement, soon).toMatchObject({ transaction: hash });
    for (const [each, answer] of [
      [signed[0], one],
      [moved, late[0]],
      [copied, paid],
      [canceled, late[1]],
      [signed[4], five],
    ] as [Signed, Answer][]) {
      expect((await bought(each)).text).toBe(answer.text);
      expect(await recordOf(answer)).toMatchObject({ reversed: false, settlement: { transaction: hash } });
      await chargedOnce(chain, each);
    }
    expect(await sentByUs()).toBe(count);
  });

  // This test advances the chain's clock by minutes, so it comes last.
  test("Calls that settled and then fail when the batch is mined again are marked as reversed, and their neighbors are charged once", async () => {
    const { signed, spoiled } = await scene();
    const [, moved, copied, canceled] = signed;
    const { answers, failed, again } = await minedTogether(signed);
    const given = await Promise.all(answers);
    expect([given.map(({ status }) => status), await failed()]).toEqual([signed.map(() => 200), 0]);
    const count = await sentByUs();

    await minedAgain([...spoiled, ...again]);
    expect(await failed()).toBe(3);
    // A record settled by a stranger names that transaction. A delivered result is replayed while the chain may still
    // pay.
    const [elsewhere] = await settlements(chain, copied.authorization.from);
    const settlementOf = async (place: number) => (await recordOf(given[place] as Answer)).settlement;
    await expect.poll(() => settlementOf(2), soon).toMatchObject({ transaction: elsewhere?.transaction });
    for (const [place, each] of signed.entries()) expect((await bought(each)).text).toBe(given[place]?.text);

    const { timestamp } = await client.getBlock();
    await chain.increaseTime(Number(moved.authorization.validBefore - timestamp) + 180);
    await chain.finalize();
    const reversed = async () => Promise.all(given.map(async (answer) => (await recordOf(answer)).reversed as boolean));
    await expect.poll(reversed, soon).toEqual([false, true, false, true, false]);
    for (const gone of [moved, canceled]) {
      expect(expectPaymentRequired(await buy(gone))).toMatch(/permanently removed from the chain/);
      await nothingCharged(chain, gone.authorization.from);
    }
    for (const place of [0, 2, 4]) {
      const each = signed[place] as Signed;
      expect((await bought(each)).text).toBe(given[place]?.text);
      await chargedOnce(chain, each);
    }
    expect(await sentByUs()).toBe(count);
  });
});
