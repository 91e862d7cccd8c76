import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { checkOffer, checkReceipt } from "../../../packages/verifier/src/commands/offer-receipt.ts";
import { type Terms, typed } from "../../support/arbiter/signed-terms.ts";
import { folderForFile } from "../../support/for-file.ts";
import { BASE, OFFER, RECEIPT, SEPOLIA, SHOP, seller, stranger, TX } from "./shop.ts";

describe("the commands believe nothing that is not signed", async () => {
  const folder = await folderForFile("verifier-attacks-");
  let files = 0;
  const file = async (value: object) => {
    const name = join(folder, `${files++}.json`);
    await writeFile(name, JSON.stringify(value));
    return name;
  };
  const accepts = (...changes: readonly Partial<Terms>[]) => changes.map((change) => ({ ...OFFER, ...change }));
  const required = (offers: readonly object[], terms = accepts({})) =>
    file({
      x402Version: 2,
      resource: { url: OFFER.resourceUrl },
      accepts: terms,
      extensions: { "offer-receipt": { info: { offers } } },
    });
  const paid = (receipt: object, members = {}) =>
    file({
      success: true,
      payer: stranger.address,
      transaction: TX,
      network: BASE,
      ...members,
      extensions: { "offer-receipt": { info: { receipt } } },
    });

  async function shown(command: typeof checkOffer, args: readonly string[]) {
    const print = vi.spyOn(console, "log").mockImplementation(() => undefined);
    onTestFinished(() => print.mockRestore());
    const code = await command(args);
    return [code, ...String(print.mock.lastCall).matchAll(/NO {3}(.*)/g)].map((one) =>
      Array.isArray(one) ? one[1] : one,
    );
  }
  const receipt = () => typed(seller, "Receipt", RECEIPT);
  const offer = (changes: Partial<Terms> = {}, by = seller) => typed(by, "Offer", { ...OFFER, ...changes } as Terms);

  test("a receipt of a test network is none of the payment that the answer names", async () => {
    const onTest = await typed(seller, "Receipt", { ...RECEIPT, network: SEPOLIA });
    const pay = ["--pay-to", seller.address];
    expect(await shown(checkReceipt, [await paid(onTest), ...pay])).toEqual([1, `network is ${BASE}`]);
    expect(await shown(checkReceipt, [await paid(onTest, { network: "base" }), ...pay])).toEqual([
      1,
      `network is ${BASE}`,
    ]);
    expect(await shown(checkReceipt, [await paid(await receipt(), { network: "base" }), ...pay])).toEqual([0]);
    const bare = await paid(await receipt(), { network: undefined, payer: undefined });
    expect(await shown(checkReceipt, [bare, ...pay])).toEqual([0]);
  });

  test("an offer beside a receipt counts by its own signature: nobody becomes the payee by naming himself", async () => {
    const forged = await offer({ payTo: stranger.address }, seller);
    const own = await typed(stranger, "Receipt", RECEIPT);
    const given = [await paid(own), "--offer", await file(forged)];
    expect(await shown(checkReceipt, given)).toEqual([1, `the signer is who is paid, ${stranger.address}`]);
    expect(await shown(checkReceipt, [await paid(await receipt()), "--offer", await file(await offer())])).toEqual([0]);
  });

  test("a receipt is compared with the offer of its network, and of its payee, whatever else was offered", async () => {
    const terms = [{ network: SEPOLIA }, { payTo: stranger.address }, {}];
    const offers = await Promise.all(terms.map((change, index) => offer(change, index === 1 ? stranger : seller)));
    const all = await required(
      offers.map((one, acceptIndex) => ({ ...one, acceptIndex })),
      accepts(...terms),
    );
    expect(await shown(checkReceipt, [await paid(await receipt()), "--offer", all])).toEqual([0]);
    const elsewhere = await typed(seller, "Receipt", { ...RECEIPT, resourceUrl: `${SHOP}/ode` });
    const [code, ...failed] = await shown(checkReceipt, [await paid(elsewhere), "--offer", all]);
    expect([code, failed]).toEqual([1, expect.arrayContaining([`resourceUrl is ${SHOP}/haiku`])]);
  });

  test("an offer that names no entry of accepts is compared with the one that says the same, or else with the first", async () => {
    const at = ["--at", "1000"];
    const terms = accepts({ amount: "1" }, {});
    expect(await shown(checkOffer, [await required([await offer()], terms), ...at])).toEqual([0]);
    expect(await shown(checkOffer, [await required([await offer({ amount: "2" })], terms), ...at])).toEqual([
      1,
      "amount is 1",
    ]);
  });

  test.each([[null], ["0"], [true], [[]], [-1], [0.5], [1], ["length"]])(
    "acceptIndex %j names no entry",
    async (acceptIndex) => {
      const one = { ...(await offer()), acceptIndex };
      await expect(shown(checkOffer, [await required([one]), "--at", "1000"])).rejects.toThrow(
        /names no entry of accepts/,
      );
    },
  );
});
