import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createOfferEIP712, createReceiptEIP712 } from "@x402/extensions/offer-receipt";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createOfferReceipt } from "../../../api/payments/receipt.ts";
import { didDocument, didWeb, keyUrl } from "../../../api/platform/signing/did.ts";
import { compactJws } from "../../../api/platform/signing/document.ts";
import { checkOffer, checkReceipt } from "../../../packages/verifier/src/commands/offer-receipt.ts";
import { checkSigned, type Expected } from "../../../packages/verifier/src/offer-receipt/check.ts";
import type { Kind } from "../../../packages/verifier/src/offer-receipt/statement.ts";
import type { Json, JsonObject } from "../../../packages/verifier/src/strict-json.ts";
import { type Terms, typed } from "../../support/arbiter/signed-terms.ts";
import { folderForFile } from "../../support/for-file.ts";
import { runCommand } from "../../support/packages/run-command.ts";
import { BASE_URL, DID, ISSUER, KEY, SAMPLE_NOW, STRANGER } from "./samples.ts";
import { BASE, OFFER, RECEIPT, SEPOLIA, SHOP, seller, stranger, TX } from "./shop.ts";

const AT = Math.floor(SAMPLE_NOW.getTime() / 1000);
const NETWORK = "eip155:8453";
const URL_PAID = `${BASE_URL}/test/basic`;
const TERMS = {
  scheme: "exact",
  network: NETWORK,
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  payTo: seller.address,
  amount: "250000",
} as const;
const PAID = { network: NETWORK, payer: stranger.address, transaction: `0x${"ab".repeat(32)}` } as const;

const signedBy = (key = KEY, issuer = ISSUER) => createOfferReceipt(compactJws(key, keyUrl(issuer, key.publicJwk)));
const infoOf = (extensions: Record<string, unknown>) =>
  (extensions as { "offer-receipt": { info: { offers: JsonObject[]; receipt: JsonObject } } })["offer-receipt"].info;

const accepts = [{ ...TERMS, maxTimeoutSeconds: 120, extra: {} }];
const offerOf = async (by = signedBy(), url = URL_PAID) =>
  infoOf(await by.offers(url, accepts, SAMPLE_NOW)).offers[0] as JsonObject;
const receiptOf = async (by = signedBy(), url = URL_PAID) =>
  infoOf(await by.receipt({ ...PAID, url }, SAMPLE_NOW)).receipt;

const GOOD = await offerOf();
const did = JSON.stringify(DID);
const check = (kind: Kind, signed: Json, expected: Partial<Expected> = {}) =>
  checkSigned(kind, signed, { at: AT, did, ...expected });
/** For signatures by the stock library, which uses the machine's clock. */
const ANY_TIME = { at: 0 };
const broken = async (...given: Parameters<typeof check>) => {
  const { valid, checks } = await check(...given);
  expect(valid).toBe(false);
  return checks.filter(({ holds }) => !holds).map(({ statement }) => statement);
};

/** The JWS with its header or its payload rewritten and its signature unchanged. */
function rewritten({ signature, ...rest }: JsonObject, part: 0 | 1, members: object): JsonObject {
  const parts = String(signature).split(".");
  const old = JSON.parse(Buffer.from(parts[part] ?? "", "base64url").toString());
  parts[part] = Buffer.from(JSON.stringify({ ...old, ...members })).toString("base64url");
  return { ...rest, signature: parts.join(".") };
}

describe("a JWS", () => {
  test("A JWS of the resource's own host is valid, as an offer and as a receipt", async () => {
    expect(await check("offer", await offerOf(), { members: TERMS })).toMatchObject({ valid: true });
    const members = { ...PAID, payer: PAID.payer.toLowerCase() };
    expect(await check("receipt", await receiptOf(), { members })).toMatchObject({ valid: true });
  });

  test("A correct JWS by a key of another host that lists the key is not valid", async () => {
    const evil = didWeb("https://evil.example");
    const theirs = JSON.stringify(didDocument(evil, [STRANGER.publicJwk]));
    const failed = await broken("offer", await offerOf(signedBy(STRANGER, evil)), { did: theirs });
    expect(failed).toEqual(["the key is one of trust.example, the resource's host"]);
  });

  test("A JWS by a key that the host does not list is not valid, even if it names that host", async () => {
    const failed = await broken("offer", await offerOf(signedBy(STRANGER)));
    expect(failed).toEqual(["the DID document lists the key", "the JWS verifies"]);
  });

  test("A JWS with an embedded key is checked with the host's key", async () => {
    const { kty, crv, x } = STRANGER.publicJwk;
    const forged = rewritten(await offerOf(signedBy(STRANGER)), 0, {
      kid: keyUrl(ISSUER, KEY.publicJwk),
      jwk: { kty, crv, x },
    });
    expect(await broken("offer", forged)).toEqual(["the JWS verifies"]);
  });

  test("A JWS without the DID document is not valid", async () => {
    expect(await broken("offer", await offerOf(), { did: undefined })).toContain("the DID document lists the key");
  });

  test("An expired JWS, or one for other terms, is not valid", async () => {
    expect(await broken("offer", await offerOf(), { at: AT + 400 })).toEqual(["the offer has not expired"]);
    expect(await broken("offer", await offerOf(), { members: { amount: "1" } })).toEqual(["amount is 1"]);
  });

  test.each<[string, JsonObject, RegExp]>([
    ["extensions", rewritten(GOOD, 0, { crit: ["b64"] }), /requires extensions/],
    ["another version", rewritten(GOOD, 1, { version: 2 }), /version 2; expected 1/],
    ["an unknown member", rewritten(GOOD, 1, { extra: "x" }), /unknown member "extra"/],
    ["an amount that is a number", rewritten(GOOD, 1, { amount: 1 }), /amount is 1; expected a string/],
    ["a time before 1970", rewritten(GOOD, 1, { validUntil: -1 }), /validUntil is -1; expected a number from 0/],
    ["no URL", rewritten(GOOD, 1, { resourceUrl: "haiku" }), /not a URL/],
  ])("A JWS with %s is refused with the reason", async (_, signed, reason) => {
    await expect(check("offer", signed)).rejects.toThrow(reason);
  });
});

describe("an EIP-712 signature of the stock library", () => {
  const offer = (by = seller) =>
    createOfferEIP712(URL_PAID, { ...TERMS, acceptIndex: 0 }, (data) => by.signTypedData(data as never));
  const receipt = (by = seller) =>
    createReceiptEIP712({ ...PAID, resourceUrl: URL_PAID }, (data) => by.signTypedData(data as never));
  const json = (signed: unknown): Json => JSON.parse(JSON.stringify(signed));
  const paid = `the signer is the payee, ${seller.address}`;

  test("It is valid only if the payee signed it", async () => {
    expect(await check("offer", json(await offer()), { ...ANY_TIME, members: TERMS })).toMatchObject({ valid: true });
    expect(await broken("offer", json(await offer(stranger)), ANY_TIME)).toEqual([paid]);
    expect(await check("receipt", json(await receipt()), { payTo: seller.address })).toMatchObject({ valid: true });
    expect(await broken("receipt", json(await receipt(stranger)), { payTo: seller.address })).toEqual([paid]);
  });

  test("A receipt proves nothing until the payee is known", async () => {
    expect(await broken("receipt", json(await receipt()))).toEqual(["the signer is the payee, which is unknown"]);
  });
});

describe("the commands", async () => {
  const folder = await folderForFile("verifier-offers-");
  const header = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64");
  const required = async (terms = accepts) => ({
    x402Version: 2,
    resource: { url: URL_PAID },
    accepts: terms,
    extensions: await signedBy().offers(URL_PAID, accepts, SAMPLE_NOW),
  });
  const response = async (transaction: string) => ({
    success: true,
    ...PAID,
    transaction,
    extensions: await signedBy().receipt({ ...PAID, url: URL_PAID }, SAMPLE_NOW),
  });
  const files = {
    "did.json": did,
    "402.txt": header(await required()),
    "dearer.json": JSON.stringify(await required([{ ...accepts[0], amount: "1000000" } as never])),
    "paid.txt": header(await response(PAID.transaction)),
    "moved.txt": header(await response(`0x${"cd".repeat(32)}`)),
    "nothing.json": "{}",
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);

  const run = ([command, ...args]: readonly string[]) =>
    runCommand(() =>
      (command === "offer" ? checkOffer : checkReceipt)(
        args.map((arg) => (/\.(json|txt)$/.test(arg) ? join(folder, arg) : arg)),
      ),
    );

  const AT_SIGNING = ["--at", String(AT)];
  test.each<[string, string[], { code: number; shown: RegExp }]>([
    [
      "a 402",
      ["offer", "402.txt", ...AT_SIGNING],
      { code: 0, shown: /^valid: "https:\/\/trust\.example\/test\/basic"/ },
    ],
    [
      "a 402 that requests more than was signed",
      ["offer", "dearer.json", ...AT_SIGNING],
      { code: 1, shown: /NO {3}amount is 1000000/ },
    ],
    ["a payment response with its offer", ["receipt", "paid.txt", "--offer", "402.txt"], { code: 0, shown: /^valid/ }],
    [
      "a payment response that names another transaction",
      ["receipt", "moved.txt"],
      { code: 1, shown: /NO {3}transaction is 0xcdcd/ },
    ],
  ])("They check %s", async (_, args, { code, shown }) => {
    expect(await run([...args, "--did", "did.json"])).toEqual({ code, text: expect.stringMatching(shown) });
  });

  test("They accept a known key, and distinguish an expired offer from one that is not genuine", async () => {
    const key = (jwk: object) => writeFile(join(folder, "key.json"), JSON.stringify(jwk));
    await key(KEY.publicJwk);
    expect(await run(["offer", "402.txt", "--key", "key.json", ...AT_SIGNING])).toMatchObject({ code: 0 });
    const over = await run(["offer", "402.txt", "--key", "key.json", "--at", String(AT + 400)]);
    expect(over).toMatchObject({ code: 1, text: expect.stringMatching(/^GENUINE, BUT EXPIRED/) });
    await key(STRANGER.publicJwk);
    const strange = await run(["offer", "402.txt", "--key", "key.json", ...AT_SIGNING]);
    expect(strange).toMatchObject({ code: 1, text: expect.stringMatching(/^NOT VALID/) });
    await key({ kty: "oct", k: "AAAA" });
    const unread = await run(["offer", "402.txt", "--key", "key.json"]);
    expect(unread).toMatchObject({ code: 2, text: expect.stringMatching(/trusted key is not a public JWK/) });
    await writeFile(join(folder, "key.json"), "{");
    const broken = await run(["offer", "402.txt", "--key", "key.json"]);
    expect(broken).toMatchObject({ code: 2, text: expect.stringMatching(/trusted key cannot be read: not JSON/) });
  });

  test("They distinguish usage errors from invalid documents", async () => {
    expect(await run(["offer", "nothing.json"])).toMatchObject({
      code: 2,
      text: expect.stringMatching(/No signed offer/),
    });
    expect(await run(["receipt"])).toMatchObject({ code: 2, text: expect.stringMatching(/offer-receipt/) });
    expect(await run(["receipt", "paid.txt", "--pay-to", "you"])).toMatchObject({ code: 2 });
  });
});

describe("attacks on the commands", async () => {
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

  test("A receipt from a test network does not belong to a payment on another network", async () => {
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

  test("An offer given with a receipt counts only with the payee's own signature", async () => {
    const forged = await offer({ payTo: stranger.address }, seller);
    const own = await typed(stranger, "Receipt", RECEIPT);
    const given = [await paid(own), "--offer", await file(forged)];
    expect(await shown(checkReceipt, given)).toEqual([1, `the signer is the payee, ${stranger.address}`]);
    expect(await shown(checkReceipt, [await paid(await receipt()), "--offer", await file(await offer())])).toEqual([0]);
  });

  test("A receipt is compared with the offer of its network and payee among all offers", async () => {
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

  test("An offer without an acceptIndex is compared with the matching entry, or else with the first", async () => {
    const at = ["--at", "1000"];
    const terms = accepts({ amount: "1" }, {});
    expect(await shown(checkOffer, [await required([await offer()], terms), ...at])).toEqual([0]);
    expect(await shown(checkOffer, [await required([await offer({ amount: "2" })], terms), ...at])).toEqual([
      1,
      "amount is 1",
    ]);
  });

  test.each([[null], ["0"], [true], [[]], [-1], [0.5], [1], ["length"]])(
    "The acceptIndex %j names no entry",
    async (acceptIndex) => {
      const one = { ...(await offer()), acceptIndex };
      await expect(shown(checkOffer, [await required([one]), "--at", "1000"])).rejects.toThrow(
        /names no entry of accepts/,
      );
    },
  );
});
