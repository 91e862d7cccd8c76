import type { Handler } from "hono";
import { type LocalAccount, sha256 } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test, vi } from "vitest";
import {
  type ContestClaim,
  ContestRefused,
  contest,
  readPayment,
  signedDeliveryOf,
} from "../../../packages/escrow/src/index.ts";
import { startContestScene } from "../../support/escrow/contest.ts";
import { type Bought, buyFrom, haiku, newBuyer, openShop, type Pays, pay } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { deployWallet } from "../../support/payments/wallets.ts";

const scene = await forFile(startContestScene());
const { chain, service, at, pass, mineAt } = scene;
const arbiter = { url: service.url };
const handler = vi.fn<Handler>(haiku);
const shop = await openShop({ chain, arbiter }, handler, {
  contestSeconds: 300,
  contestConditions: { expect: { expect_contains: "frog" } },
});
const EXPECT: ContestClaim = { category: "expect" };

const statusOf = async ({ id }: Bought, pays: Pays) => {
  const { escrow } = pays === "commerce" ? at.escrow : at.operator;
  return (await readPayment(chain.client, escrow.address, id)).status;
};

describe.each<Pays>(["commerce", "auth-capture"])('a shop with a window, paid by "%s"', (pays) => {
  test("its buyer contests what was promised and gets the money back", async () => {
    const buyer = await newBuyer(chain);
    const bought = await buyFrom(shop, buyer, { pays });
    const { response, id, decision } = bought;
    expect([response.status, decision]).toEqual([200, "release"]);
    expect(response.headers.get("x-escrow-contest")).toBe(`${service.url}/escrow/contest/${id}`);
    await pass();
    expect(await statusOf(bought, pays)).toBe("held");
    const request = { account: buyer, arbiterUrl: service.url, paymentId: id, claim: EXPECT };
    const outcome = { decision: "refund", rule: "claim_false", url: `${service.url}/escrow/contest/${id}` };
    expect(await contest(request)).toEqual(outcome);
    expect(await contest(request)).toEqual(outcome);
    await pass();
    expect(await statusOf(bought, pays)).toBe("refunded");
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  });
});

test("a merchant that answers its buyer otherwise than the arbiter is shown by its own signature", async () => {
  // The shop's server sends another body than its middleware forwarded, with what it signed for that one.
  const buyer = await newBuyer(chain);
  const honest = await buyFrom(shop, buyer);
  const twice = await openShop({ chain, arbiter }, (c) => c.json({ haiku: "A frog jumps in" }), {
    account: shop.account,
    contestSeconds: 300,
    contestConditions: { expect: { expect_contains: "frog" } },
    forward: async () => "release",
  });
  const other = signedDeliveryOf(await pay(twice, honest.header)) ?? expect.fail("nothing was signed");
  const claim: ContestClaim = { category: "payload-hash", delivery: other };
  const outcome = await contest({ account: buyer, arbiterUrl: service.url, paymentId: honest.id, claim });
  expect(outcome).toMatchObject({ decision: "refund", rule: "claim_false" });
});

test("a wallet's contract contests by its owner's signature (ERC-1271), and by nobody else's", async () => {
  const owner = privateKeyToAccount(generatePrivateKey());
  const { address } = await deployWallet(chain, owner.address);
  await chain.fund(address, 1_000_000n);
  const payer = { address, signTypedData: owner.signTypedData } as LocalAccount;
  const bought = await buyFrom(shop, payer, { pays: "auth-capture" });
  expect(bought.decision).toBe("release");
  const request = { arbiterUrl: service.url, paymentId: bought.id, claim: EXPECT };
  const stranger = contest({ ...request, account: shop.account });
  await expect(stranger).rejects.toMatchObject({ code: "not_the_payer" });
  expect(await contest({ ...request, account: payer })).toMatchObject({ decision: "refund" });
  await pass();
  expect([await statusOf(bought, "auth-capture"), await chain.usdcBalance(address)]).toEqual(["refunded", 1_000_000n]);
});

test("a shop without a window sends nothing to contest", async () => {
  const plain = await openShop({ chain, arbiter }, haiku);
  const bought = await buyFrom(plain, await newBuyer(chain));
  expect([...bought.response.headers.keys()].filter((name) => /x-escrow-(contest|delivery)/.test(name))).toEqual([]);
  await pass();
  expect(await statusOf(bought, "commerce")).toBe("released");
});

test("buyers get the delivery signed, as it was forwarded; their silence releases it when the window closes", async () => {
  const buyers = [await newBuyer(chain), await newBuyer(chain)] as const;
  const bought = [
    { pays: "commerce" as const, buyer: buyers[0], ...(await buyFrom(shop, buyers[0])) },
    { pays: "auth-capture" as const, buyer: buyers[1], ...(await buyFrom(shop, buyers[1], { pays: "auth-capture" })) },
  ];
  let closes = 0;
  for (const { response, header } of bought) {
    const delivery = signedDeliveryOf(response);
    const body = new Uint8Array(await response.arrayBuffer());
    expect(delivery).toMatchObject({ status: 200, body_sha256: sha256(body), content_type: "application/json" });
    const again = await pay(shop, header);
    expect([again.headers.get("x-idempotent-replay"), signedDeliveryOf(again)]).toEqual(["true", delivery]);
    const page = await fetch(again.headers.get("x-escrow-contest") ?? "");
    closes = Date.parse(((await page.json()) as { window: { until: string } }).window.until) / 1000;
  }
  await mineAt(closes);
  await pass();
  for (const { pays, buyer, ...one } of bought) {
    expect(await statusOf(one, pays)).toBe("released");
    const late = contest({ account: buyer, arbiterUrl: service.url, paymentId: one.id, claim: EXPECT });
    await expect(late).rejects.toThrow(ContestRefused);
    await expect(late).rejects.toMatchObject({ code: "contest_over" });
  }
});
