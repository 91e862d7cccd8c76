import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import {
  type EIP712SignedOffer,
  extractReceiptFromResponse,
  verifyOfferSignatureEIP712,
  verifyReceiptSignatureEIP712,
} from "@x402/extensions/offer-receipt";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { type Address, getAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { EscrowScheme } from "../../../packages/escrow/src/index.ts";
import { buyFrom, haiku, holdsBy, newBuyer, openShop, pay, SHOP, startSaleScene } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { headerBytesOf, MOST_HEADER_BYTES } from "../../support/nginx.ts";

const scene = await forFile(startSaleScene());
const shop = await openShop(scene, haiku);

const buyer = () => newBuyer(scene.chain, 10_000_000n);
const stranger: Address = "0x00000000000000000000000000000000c0ffee99";

describe("with the stock client", () => {
  test("The stock client's limit of $1 per payment applies unless the buyer raises it", async () => {
    const [dear, payer] = [await openShop(scene, haiku, { price: "1.01" }), await buyer()];
    await expect(buyFrom(dear, payer)).rejects.toThrow(/spendControls\.maxAmountPerPayment \(\$1, including USDC\)/);
    expect(await holdsBy(scene, payer.address)).toBe(0);
    const client = new x402Client().register("eip155:*", new EscrowScheme(payer));
    client.setSpendControls({ maxAmountPerPayment: "$2" });
    expect((await wrapFetchWithPayment(dear.fetch, client)(SHOP, { method: "POST" })).status).toBe(200);
  });

  test("A token other than Circle's USDC is refused unless the client's spending controls allow it", async () => {
    const { findDefaultAsset } = EscrowScheme.prototype;
    const { address } = scene.chain.network.usdc;
    expect(findDefaultAsset(getAddress(address), "eip155:8453")).toMatchObject({ decimals: 6, symbol: "USDC" });
    expect(findDefaultAsset(address, "eip155:84532")).toBeUndefined();
    const client = new x402Client().register("eip155:*", new EscrowScheme(await buyer()));
    const offer = async (asset: string): Promise<Response> => {
      const response = await shop.fetch(SHOP, { method: "POST" });
      const terms = JSON.parse(atob(response.headers.get("payment-required") ?? ""));
      for (const accepted of terms.accepts) accepted.asset = asset;
      return new Response("{}", { status: 402, headers: { "payment-required": btoa(JSON.stringify(terms)) } });
    };
    const buy = () => wrapFetchWithPayment(() => offer(stranger), client)(SHOP, { method: "POST" });
    await expect(buy()).rejects.toThrow(/rejected by spendControls: only default assets/);
    client.setSpendControls({ allowedAssets: [{ network: "eip155:8453", asset: stranger }] });
    expect((await buy()).status).toBe(402);
  });

  test("The buyer's own limits also apply, and nothing is signed above them", async () => {
    const payer = await buyer();
    await expect(buyFrom(shop, payer, { maxAmount: "0.099999" })).rejects.toThrow(/amount is "100000"/);
    await expect(buyFrom(shop, payer, { escrows: [stranger] })).rejects.toThrow(/extra\.escrowAddress is/);
    expect(await holdsBy(scene, payer.address)).toBe(0);
    const { response } = await buyFrom(shop, payer, { maxAmount: 100_000n, escrows: [scene.escrow.address] });
    expect(response.status).toBe(200);
  });

  test("Two payments for the same resource are two holds", async () => {
    const payer = await buyer();
    const [first, second] = [await buyFrom(shop, payer), await buyFrom(shop, payer)];
    expect(first.id).not.toBe(second.id);
    expect(await holdsBy(scene, payer.address)).toBe(2);
  });
});

const unpaid = async (from = shop, url = SHOP) => {
  const response = await from.fetch(url, { method: "POST" });
  const header = response.headers.get("payment-required") ?? "";
  const challenge = decodePaymentRequiredHeader(header);
  const { info } = (challenge.extensions?.["offer-receipt"] ?? {}) as { info?: { offers: EIP712SignedOffer[] } };
  return { response, header, challenge, offers: info?.offers ?? [] };
};

test("The merchant's account signs one offer per scheme, and the stock library verifies each", async () => {
  const { challenge, offers } = await unpaid();
  expect(offers.map(({ acceptIndex }) => acceptIndex)).toEqual([0, 1]);
  for (const [index, { scheme, network, asset, payTo, amount }] of challenge.accepts.entries()) {
    const { signer, payload } = await verifyOfferSignatureEIP712(offers[index] as EIP712SignedOffer);
    expect(signer).toBe(shop.account.address);
    expect(payload).toMatchObject({ version: 1, resourceUrl: SHOP, scheme, network, asset, payTo, amount });
    expect(payload.validUntil).toBeGreaterThan(Date.now() / 1000 + 290);
  }
});

test("The 402 header and the payment of a stock client that echoes it are both below 4 KB", async () => {
  const { header, challenge } = await unpaid();
  const client = new x402Client().register(
    "eip155:*",
    new AuthCaptureEvmScheme(privateKeyToAccount(generatePrivateKey())),
  );
  const payment = encodePaymentSignatureHeader(await client.createPaymentPayload(challenge));
  expect(header.length).toBeLessThan(4_096);
  expect(payment.length).toBeLessThan(4_096);
});

const HOST = `${"a".repeat(52)}.example`;

test.each([
  ["a host name of 60 letters", `https://${HOST}/haiku`, "A haiku"],
  ["a long description", `https://${HOST}/haiku`, "Haiku über alles. ".repeat(200)],
  ["a long query", `https://${HOST}/haiku?about=${"pond".repeat(700)}`, "A haiku"],
])("With %s, the header blocks of the 402 and the 200 stay below 4,000 bytes", async (_, url, description) => {
  const named = await openShop(scene, haiku, { description });
  const { response, challenge } = await unpaid(named, url);
  expect(challenge.accepts.map(({ scheme }) => scheme)).toEqual(["auth-capture", "commerce"]);
  expect(headerBytesOf(response.headers)).toBeLessThan(MOST_HEADER_BYTES);
  for (const pays of ["auth-capture", "commerce"] as const) {
    const bought = await buyFrom(named, await newBuyer(scene.chain), { url, pays });
    expect([bought.response.status, bought.decision]).toEqual([200, "release"]);
    expect(headerBytesOf(bought.response.headers)).toBeLessThan(MOST_HEADER_BYTES);
  }
});

test("Offers that do not fit in the header are in the body, where the stock library verifies them", async () => {
  const { response, offers: inHeader } = await unpaid(shop, `https://${HOST}/haiku`);
  expect(inHeader).toEqual([]);
  const { extensions } = (await response.json()) as {
    extensions: Record<string, { info: { offers: EIP712SignedOffer[] } }>;
  };
  const offers = extensions["offer-receipt"]?.info.offers ?? [];
  expect(offers).toHaveLength(2);
  for (const offer of offers) expect((await verifyOfferSignatureEIP712(offer)).signer).toBe(shop.account.address);
});

test("A released payment has a receipt signed by the merchant that was paid", async () => {
  const buyer = await newBuyer(scene.chain);
  const { response, header } = await buyFrom(shop, buyer);
  expect(response.status).toBe(200);
  const receipt = extractReceiptFromResponse(response);
  if (receipt?.format !== "eip712") throw new Error("no receipt");
  const { signer, payload } = await verifyReceiptSignatureEIP712(receipt);
  expect(signer).toBe(shop.account.address);
  expect(payload).toMatchObject({ version: 1, network: "eip155:8453", resourceUrl: SHOP });
  const payer = payload.payer.toLowerCase();
  expect(payer).toBe(buyer.address.toLowerCase());
  const mined = await scene.chain.client.getTransactionReceipt({ hash: payload.transaction as `0x${string}` });
  expect(mined.status).toBe("success");
  expect(Math.abs(payload.issuedAt - Date.now() / 1000)).toBeLessThan(60);
  const replay = await pay(shop, header);
  expect(replay.headers.get("payment-response")).toBe(response.headers.get("payment-response"));
});

test("A refunded payment has no receipt", async () => {
  const broken = await openShop(scene, (c) => c.json({ error: "out of haiku" }, 500));
  const { response } = await buyFrom(broken, await newBuyer(scene.chain));
  expect(response.headers.get("x-escrow-decision")).toBe("refund");
  expect(extractReceiptFromResponse(response)).toBeUndefined();
});

test("A merchant whose account cannot sign sells without offers, and the failure is logged", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  const mute = { ...account, signTypedData: () => Promise.reject(new Error("the signer is locked")) };
  const silent = await openShop(scene, haiku, { account: mute as typeof account });
  const { response, offers } = await unpaid(silent);
  expect([response.status, offers]).toEqual([402, []]);
  expect(silent.logged).toEqual([expect.stringMatching(/could not be signed.*locked/)]);
});

test("A merchant with signsOffers set to false sends no signed offers", async () => {
  expect((await unpaid(await openShop(scene, haiku, { signsOffers: false }))).offers).toEqual([]);
});

test("With an origin, signed offers name it no matter which host the request names", async () => {
  const named = await openShop(scene, haiku, { origin: "https://shop.example" });
  const { challenge, offers } = await unpaid(named, "http://evil.example:81/haiku?x=1");
  expect(challenge.resource?.url).toBe("https://shop.example/haiku?x=1");
  expect(offers.map(({ payload }) => payload.resourceUrl)).toEqual(Array(2).fill("https://shop.example/haiku?x=1"));
  await expect(openShop(scene, haiku, { origin: "https://shop.example/api" })).rejects.toThrow(/without a path/);
});
