import { type Hex, type LocalAccount, zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { findHold, selfRefund } from "../../../packages/escrow/src/index.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { type MerchantProcess, openMerchant } from "../../support/escrow/merchant-process.ts";
import {
  buyFrom,
  haiku,
  holdsBy,
  newBuyer,
  openShop,
  type Pays,
  pay,
  signFor,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const running = new Set<MerchantProcess>();
const scene = await forFile(startSaleScene());
afterEach(async () => {
  await Promise.all([...running].map(({ kill }) => kill()));
  running.clear();
  scene.arbiter.become("fair");
});

/** Starts the example merchant as a separate process. */
async function open(key: Hex, env: Record<string, string> = {}): Promise<MerchantProcess> {
  const opened = await openMerchant(scene, { MERCHANT_PRIVATE_KEY: key, ...env });
  running.add(opened);
  return opened;
}

async function newMerchant(): Promise<{ readonly key: Hex; readonly account: LocalAccount }> {
  const key = generatePrivateKey();
  const account = privateKeyToAccount(key);
  await scene.chain.setBalance(account.address, 10n ** 18n);
  return { key, account };
}

const balance = ({ address }: LocalAccount) => scene.chain.usdcBalance(address);
const overHttp = { fetch };
const PAYS: readonly Pays[] = ["auth-capture", "commerce"];

describe("good delivery", async () => {
  const { key, account } = await newMerchant();
  let merchant: MerchantProcess;
  beforeAll(async () => {
    merchant = await openMerchant(scene, { MERCHANT_PRIVATE_KEY: key });
    return merchant.kill;
  });

  /** Expects the sale to have paid the merchant 99% and cost the buyer the full price. */
  const expectPaid = async (buyer: LocalAccount, sale: { readonly id: Hex; readonly pays: Pays }, before: bigint) => {
    await eventually(() => statusOf(scene, sale.id, sale.pays), "released" as const);
    expect([await balance(account), await balance(buyer)]).toEqual([before + 99_000n, 900_000n]);
  };

  test.each(PAYS)(
    "A sale over @x402/fetch and %s pays the merchant 99%, and a replay gets the same response",
    async (pays) => {
      const [buyer, before, { url }] = [await newBuyer(scene.chain), await balance(account), merchant];
      const { response, header, id, decision } = await buyFrom(overHttp, buyer, { url, pays });
      const text = await response.text();
      expect({ status: response.status, decision }).toEqual({ status: 200, decision: "release" });
      expect(JSON.parse(text)).toMatchObject({ haiku: expect.stringMatching(/pond/) });
      await expectPaid(buyer, { id, pays }, before);
      const again = await pay(overHttp, header, url);
      expect([again.status, again.headers.get("x-idempotent-replay"), await again.text()]).toEqual([200, "true", text]);
      expect(await holdsBy(scene, buyer.address)).toBe(1);
    },
  );
});

test.each(PAYS)("%s: a merchant killed after the hold finishes the sale with the same header", async (pays) => {
  const [{ key, account }, buyer] = [await newMerchant(), await newBuyer(scene.chain)];
  const slow = await open(key, { WRITING_MS: "60000" });
  const header = await signFor(overHttp, buyer, { url: slow.url, pays });
  const lost = pay(overHttp, header, slow.url).catch(() => "lost");
  await slow.untilPrinted("writing");
  await slow.kill();
  expect(await lost).toBe("lost");
  expect(await holdsBy(scene, buyer.address)).toBe(1);
  const { url } = await open(key);
  const response = await pay(overHttp, header, url);
  expect(response.status).toBe(200);
  expect(response.headers.get("x-escrow-decision")).toBe("release");
  const id = response.headers.get("x-escrow-payment") as Hex;
  await eventually(() => statusOf(scene, id, pays), "released" as const);
  expect(await holdsBy(scene, buyer.address)).toBe(1);
  expect(await balance(account)).toBe(99_000n);
});

/** Moves the chain's clock, so it must be the last in this file. */
describe("sale without an evaluated delivery", () => {
  const release = async (merchant: LocalAccount, id: Hex) => {
    const found = await findHold(scene.chain.client, { id });
    if (found === null) throw new Error("The hold is not found.");
    const call = { address: found.escrow, abi: escrowAbi, account: merchant } as const;
    return scene.chain.client.simulateContract({
      ...call,
      functionName: "release",
      args: [found.info, zeroHash, "0x"],
    });
  };

  test("The merchant gets nothing and the buyer is refunded after 30 minutes if the merchant dies, the arbiter is down, or the merchant decides alone", async () => {
    const [killed, honest, greedy] = [await newMerchant(), await newMerchant(), await newMerchant()];
    const buyers = [await newBuyer(scene.chain), await newBuyer(scene.chain), await newBuyer(scene.chain)] as const;

    const slow = await open(killed.key, { WRITING_MS: "60000" });
    const lost = pay(overHttp, await signFor(overHttp, buyers[0], slow.url), slow.url).catch(() => "lost");
    await slow.untilPrinted("writing");
    await slow.kill();
    await lost;

    scene.arbiter.become("down");
    const pending = await buyFrom(await openShop(scene, haiku, { account: honest.account }), buyers[1]);
    expect(pending.decision).toBe("pending");

    const lying = await openShop(scene, (c) => c.body(""), { account: greedy.account, forward: async () => "release" });
    const lied = await buyFrom(lying, buyers[2], { pays: "auth-capture" });
    expect(lied.decision).toBe("release");
    expect(await statusOf(scene, lied.id, "auth-capture")).toBe("held");
    await expect(release(greedy.account, lied.id)).rejects.toThrow(/NotArbiter/);

    await scene.chain.increaseTime(1800);
    const { client } = scene.chain;
    for (const { address } of buyers) {
      const contracts = [scene.escrow.address, scene.operator.address];
      const filter = { address: contracts, abi: escrowAbi, eventName: "Held", args: { payer: address } } as const;
      const [held] = await client.getContractEvents({ ...filter, fromBlock: 0n });
      if (held?.transactionHash === undefined) throw new Error("There is no hold.");
      await selfRefund({ account: devAccount(7), client, transaction: held.transactionHash });
    }
    expect(await Promise.all(buyers.map(balance))).toEqual([1_000_000n, 1_000_000n, 1_000_000n]);
    expect(await Promise.all([killed, honest, greedy].map(({ account }) => balance(account)))).toEqual([0n, 0n, 0n]);
  });
});
