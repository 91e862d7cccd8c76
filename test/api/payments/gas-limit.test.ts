import { type Hex, pad } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired } from "../../support/payments/expectations.ts";
import { broadcast, chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { burningOn, FLAG, gasBelow, originIs, SIGNS, thinking } from "../../support/payments/wallets.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { RELAYER, startService } from "../../support/service/service.ts";

const MOST_GAS = 350_000n;
const soon = { timeout: 10_000, interval: 50 };

const chain = await forFile(startTestChain());
const database = await freshDatabase();
const one = await forFile(startService({ chain, database }));
const { signingKey, sealingKey } = one.config;
const other = await forFile(startService({ chain, database, config: { signingKey, sealingKey } }));
const buy = ({ url }: { readonly url: string }, signed: Signed) => post(`${url}/test/basic`, v2(signed));

let before: number;
const sent = async () => (await chain.client.getTransactionCount({ address: RELAYER.address })) - before;

beforeEach(async () => {
  before = await chain.client.getTransactionCount({ address: RELAYER.address });
});

/** The gas of everything the relayer has sent in this test. */
async function gasSpent(): Promise<bigint> {
  const { rows } = await withClient(database.ownerUrl, (client) =>
    client.query<{ hash: Buffer }>("SELECT unnest(hashes) AS hash FROM relay WHERE nonce >= $1", [before]),
  );
  const receipts = await Promise.all(
    rows.map(({ hash }) =>
      chain.client.getTransactionReceipt({ hash: `0x${hash.toString("hex")}` }).catch(() => ({ gasUsed: 0n })),
    ),
  );
  return receipts.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
}

/** Accounts with this code, as a contract and by delegation (EIP-7702), with 10 USDC each. */
const KINDS = {
  "a contract": async (code: Hex) => {
    const account = await newPayer(chain);
    await chain.client.setCode({ address: account.address, bytecode: code });
    return account;
  },
  "an account that delegates to one (EIP-7702)": async (code: Hex) => {
    const { address: wallet } = await newPayer(chain, 0n);
    await chain.client.setCode({ address: wallet, bytecode: code });
    const account = await newPayer(chain);
    await chain.client.setCode({ address: account.address, bytecode: `0xef0100${wallet.slice(2)}` });
    return account;
  },
} as const;
const kinds = Object.entries(KINDS);

describe.each(kinds)("%s that behaves in simulations", (_, deploy) => {
  test.each([
    ["by their gas price", SIGNS["transactions have a gas price, simulations none"]],
    ["by their origin", SIGNS["transactions have an origin, simulations none"]],
    ["by our address", originIs(RELAYER.address)],
    ["by more gas than we give", gasBelow(1_000_000)],
  ])("which it knows %s, is refused, and no gas is spent", async (__, sign) => {
    const payer = await deploy(burningOn(sign));
    const why = expectPaymentRequired(await buy(one, await signPayment(payer)));
    expect(why).toMatch(/rejects the signature|more than 350,000 gas/);
    expect(await sent()).toBe(0);
  });

  test("and turns when it is mined costs 350,000 gas at most, once: the same header is never submitted again", async () => {
    const payer = await deploy(burningOn(SIGNS["a flag in its storage is set in between"]));
    const signed = await signPayment(payer);
    await chain.client.setAutomine(false);
    const answering = buy(one, signed);
    await expect.poll(async () => (await chain.client.getTxpoolStatus()).pending, soon).toBe(1);
    await chain.client.setStorageAt({ address: payer.address, ...FLAG });
    await chain.mine();
    await chain.client.setAutomine(true);
    const answers = [await answering];
    await chain.client.setStorageAt({ address: payer.address, index: FLAG.index, value: pad("0x0") });
    for (const service of [one, other, one]) answers.push(await buy(service, signed));
    answers.push(...(await Promise.all([one, other, other].map((service) => buy(service, signed)))));
    for (const answer of answers) expect(expectPaymentRequired(answer)).toMatch(/mined and reverted/);
    expect(await sent()).toBe(1);
    const spent = await gasSpent();
    expect(spent).toBeLessThanOrEqual(MOST_GAS);
    expect(spent).toBeGreaterThan(50_000n);
    await nothingCharged(chain, payer);
  });
});

test("what was mined and reverted is paid after all when its payer broadcasts it: the same header gets its result", async () => {
  const payer = await KINDS["a contract"](burningOn(SIGNS["a flag in its storage is set in between"]));
  const signed = await signPayment(payer);
  await chain.client.setAutomine(false);
  const answering = buy(one, signed);
  await expect.poll(async () => (await chain.client.getTxpoolStatus()).pending, soon).toBe(1);
  await chain.client.setStorageAt({ address: payer.address, ...FLAG });
  await chain.mine();
  await chain.client.setAutomine(true);
  expectPaymentRequired(await answering);
  await chain.client.setStorageAt({ address: payer.address, index: FLAG.index, value: pad("0x0") });
  await broadcast(chain, signed);
  expect((await buy(other, signed)).status).toBe(200);
  await chargedOnce(chain, signed);
  expect(await sent()).toBe(1);
});

test("a wallet that needs more gas than we give is refused with the reason", async () => {
  const payer = await newPayer(chain);
  await chain.client.setCode({ address: payer.address, bytecode: thinking(8_000) });
  const why = expectPaymentRequired(await buy(one, await signPayment(payer)));
  expect(why).toMatch(/would take more than 350,000 gas/);
  expect(await sent()).toBe(0);
});

test("one that needs less pays", async () => {
  const payer = await newPayer(chain);
  await chain.client.setCode({ address: payer.address, bytecode: thinking(2_500) });
  const signed = await signPayment(payer);
  expect((await buy(one, signed)).status).toBe(200);
  await chargedOnce(chain, signed);
  const spent = await gasSpent();
  expect(spent).toBeGreaterThan(200_000n);
  expect(spent).toBeLessThanOrEqual(MOST_GAS);
});
