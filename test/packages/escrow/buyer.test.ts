import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { type Address, getAddress } from "viem";
import { describe, expect, test } from "vitest";
import { EscrowScheme } from "../../../packages/escrow/src/index.ts";
import {
  buyFrom,
  haiku,
  holdsBy,
  newBuyer,
  openShop,
  SHOP,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { deployWallet } from "../../support/payments/wallets.ts";

const scene = await forFile(startSaleScene());
const shop = await openShop(scene, haiku);

const buyer = () => newBuyer(scene.chain, 10_000_000n);
const stranger: Address = "0x00000000000000000000000000000000c0ffee99";

describe("with the stock client", () => {
  test("its own limit holds: 1 USD a payment, unless the buyer says otherwise", async () => {
    const [dear, payer] = [await openShop(scene, haiku, { price: "1.01" }), await buyer()];
    await expect(buyFrom(dear, payer)).rejects.toThrow(/spendControls\.maxAmountPerPayment \(\$1, including USDC\)/);
    expect(await holdsBy(scene, payer.address)).toBe(0);
    const client = new x402Client().register("eip155:*", new EscrowScheme(payer));
    client.setSpendControls({ maxAmountPerPayment: "$2" });
    expect((await wrapFetchWithPayment(dear.fetch, client)(SHOP, { method: "POST" })).status).toBe(200);
  });

  test("a token that is not Circle's USDC is refused, unless its spending controls allow it", async () => {
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

  test("the buyer's own limits hold too, and nothing is signed", async () => {
    const payer = await buyer();
    await expect(buyFrom(shop, payer, { maxAmount: "0.099999" })).rejects.toThrow(/amount is "100000"/);
    await expect(buyFrom(shop, payer, { escrows: [stranger] })).rejects.toThrow(/extra\.escrowAddress is/);
    expect(await holdsBy(scene, payer.address)).toBe(0);
    const { response } = await buyFrom(shop, payer, { maxAmount: 100_000n, escrows: [scene.escrow.address] });
    expect(response.status).toBe(200);
  });

  test("two payments for the same thing are two holds", async () => {
    const payer = await buyer();
    const [first, second] = [await buyFrom(shop, payer), await buyFrom(shop, payer)];
    expect(first.id).not.toBe(second.id);
    expect(await holdsBy(scene, payer.address)).toBe(2);
  });
});

test("a smart wallet buys by its owner's signature (ERC-1271), and a stranger's buys nothing", async () => {
  const [owner, other] = [await buyer(), await buyer()];
  const wallet = await deployWallet(scene.chain, owner.address);
  await scene.chain.fund(wallet.address, 1_000_000n);
  const signedBy = (signer: typeof owner) => ({ ...signer, address: wallet.address });
  const forged = await buyFrom(shop, signedBy(other));
  expect(forged.response.status).toBe(402);
  const { response, id } = await buyFrom(shop, signedBy(owner));
  expect(response.status).toBe(200);
  await eventually(() => statusOf(scene, id), "released" as const);
  expect(await scene.chain.usdcBalance(wallet.address)).toBe(900_000n);
});
