import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import {
  type Hex,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { escrowed } from "../../../packages/escrow/src/index.ts";
import { listen, merchantIn } from "../../support/escrow/real-shops.ts";
import {
  buyFrom,
  decodeHeader,
  encodeHeader,
  holdsBy,
  newBuyer,
  openShop,
  type Pays,
  pay,
  signFor,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { pythonHome, pythonShops } from "../../support/packages/python.ts";
import { altered, highS } from "../../support/payments/signing.ts";
import { deployWallet } from "../../support/payments/wallets.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const home = await pythonHome();

describe.skipIf(home === null)("the escrow in Python", async () => {
  if (home === null) return;
  const { run } = home;
  const scene = await forFile(startSaleScene());

  /** Buys with the PyPI client. */
  async function buyInPython(url: string, service = scene.service.url) {
    const key = generatePrivateKey();
    const payer = privateKeyToAccount(key);
    await scene.chain.fund(payer.address, 1_000_000n);
    const { code, stdout, stderr } = await run([here("buyer.py"), url, service], { PAYER_PRIVATE_KEY: key });
    expect([code, stderr]).toEqual([0, ""]);
    return { payer, ...JSON.parse(stdout) };
  }

  test("A Python buyer signs the contest window of the Hono shop", async () => {
    const options = {
      ...(await merchantIn(scene)),
      contestSeconds: 1,
      contestConditions: { expect: { min_bytes: 4 } },
    };
    const app = new Hono().post(
      "/haiku",
      escrowed(options, (c) => c.json({ haiku: "An old silent pond" })),
    );
    const { url } = await listen(getRequestListener(app.fetch));
    const { status, headers } = await buyInPython(url);
    expect([status, headers["x-escrow-decision"]]).toEqual([200, "release"]);
    expect(headers["x-escrow-contest"]).toMatch(/^http/);
  });

  test("A Python buyer signs nothing for an operator that its service does not list", async () => {
    const options = await merchantIn(scene);
    const listed = new Hono().get("/escrow", (c) =>
      c.json({ contracts: [{ scheme: "auth-capture", address: options.account.address }] }),
    );
    const { url: other } = await listen(getRequestListener(listed.fetch));
    const app = new Hono().post(
      "/haiku",
      escrowed(options, (c) => c.json({ haiku: "An old silent pond" })),
    );
    const { url } = await listen(getRequestListener(app.fetch));
    const { refused, payer } = await buyInPython(url, new URL(other).origin);
    expect(refused).toMatch(/extra\.captureAuthorizer is 0x\w+, expected one of 0x/);
    expect(await holdsBy(scene, payer.address)).toBe(0);
  });

  const merchantKey = generatePrivateKey();
  const merchant = privateKeyToAccount(merchantKey).address;
  await scene.chain.setBalance(merchant, 10n ** 18n);
  const {
    shop: { url: shopUrl, printed },
  } = await pythonShops(home, here("shop.py"), {
    env: { BASE_RPC_URL: scene.chain.rpcUrl, ARBITER_URL: scene.arbiter.url },
    shops: { shop: { key: merchantKey } },
  });
  const shop = { fetch };
  const at = (path: string) => `${shopUrl}${path}`;
  const send = (path: string, header: string, init: RequestInit = {}) =>
    fetch(at(path), { method: "POST", ...init, headers: { "payment-signature": header, ...init.headers } });
  const runs = (id: string | null) => printed().filter((line) => line.endsWith(String(id))).length;
  const PAYS: readonly Pays[] = ["auth-capture", "commerce"];

  test.each(PAYS)(
    "A TypeScript buyer pays the FastAPI shop by %s once, even if it repeats its request",
    async (pays) => {
      const buyer = await newBuyer(scene.chain);
      const { response, header, id, decision } = await buyFrom(shop, buyer, { url: at("/haiku"), pays });
      expect([response.status, await response.json(), decision]).toEqual([
        200,
        { haiku: "An old silent pond" },
        "release",
      ]);
      expect(response.headers.get("set-cookie")).toBe("a=1");
      const paid = decodeHeader(response.headers.get("payment-response") ?? "");
      expect(paid).toMatchObject({ success: true, network: "eip155:8453", payer: buyer.address, amount: "100000" });
      await expect.poll(() => statusOf(scene, id, pays)).toBe("released");
      const again = await Promise.all([1, 2, 3].map(() => send("/haiku", header)));
      for (const replay of again) {
        expect([replay.status, replay.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
        expect(replay.headers.get("x-escrow-payment")).toBe(id);
      }
      const other = await send("/stream", header);
      const error = expect.stringMatching(
        /^The payment is for .*\/haiku, which is a different resource\. Nothing was held/,
      );
      expect([other.status, await other.json()]).toEqual([409, { error }]);
      expect([runs(id), await holdsBy(scene, buyer.address)]).toEqual([1, 1]);
    },
  );

  test("Ten simultaneous buyers are all served", async () => {
    const buyers = await Promise.all(Array.from({ length: 10 }, () => newBuyer(scene.chain)));
    const all = await Promise.all(
      buyers.map((buyer, index) => buyFrom(shop, buyer, { url: at("/haiku"), pays: PAYS[index % 2] ?? "commerce" })),
    );
    expect(all.map(({ response, decision }) => [response.status, decision])).toEqual(Array(10).fill([200, "release"]));
  });

  test("One payment that is sent five times simultaneously is held and handled once", async () => {
    const buyer = await newBuyer(scene.chain);
    const header = await signFor(shop, buyer, { url: at("/haiku"), pays: "auth-capture" });
    const all = await Promise.all(Array.from({ length: 5 }, () => send("/haiku", header)));
    expect(all.map(({ status }) => status)).toEqual(Array(5).fill(200));
    const [first] = all;
    expect([runs(first?.headers.get("x-escrow-payment") ?? null), await holdsBy(scene, buyer.address)]).toEqual([1, 1]);
  });

  test("A buyer that hangs up gets the response with the same header", async () => {
    const buyer = await newBuyer(scene.chain);
    const header = await signFor(shop, buyer, { url: at("/haiku"), pays: "auth-capture" });
    await expect(send("/haiku", header, { signal: AbortSignal.timeout(50) })).rejects.toThrow();
    const answer = await send("/haiku", header);
    expect(answer.status).toBe(200);
    expect([runs(answer.headers.get("x-escrow-payment")), await holdsBy(scene, buyer.address)]).toEqual([1, 1]);
  });

  test("An unpaid request gets the terms in a header that fits nginx's limit, and a body without terms", async () => {
    const answer = await fetch(at(`/haiku?${"a".repeat(3_000)}`), { method: "POST" });
    expect([answer.status, await answer.json()]).toMatchObject([402, { x402Version: 1, accepts: [] }]);
    const header = answer.headers.get("payment-required") ?? "";
    expect(header.length).toBeLessThanOrEqual(3_200);
    const { x402Version, accepts } = decodeHeader(header);
    expect([x402Version, accepts.map(({ scheme }: { scheme: string }) => scheme)]).toEqual([
      2,
      ["auth-capture", "commerce"],
    ]);
  });

  test("Input that the merchant refuses costs nothing, paid or unpaid", async () => {
    const buyer = await newBuyer(scene.chain);
    const header = await signFor(shop, buyer, { url: at("/haiku"), pays: "auth-capture" });
    for (const answer of [await fetch(at("/haiku?lines=4"), { method: "POST" }), await send("/haiku?lines=4", header)])
      expect([answer.status, await answer.json()]).toEqual([422, { error: "A haiku has 3 lines." }]);
    expect(await holdsBy(scene, buyer.address)).toBe(0);
    expect((await send("/haiku", header)).status).toBe(200);
  });

  test("A malformed header gets a 400, a payment for other terms a 402, and neither is held", async () => {
    const buyer = await newBuyer(scene.chain);
    for (const header of ["{}", "e30", encodeHeader([1]), encodeHeader({ x402Version: 2, payload: {} }), "\u00e9"])
      expect((await send("/haiku", header)).status).toBe(400);
    for (const pays of PAYS) {
      const good = decodeHeader(await signFor(shop, buyer, { url: at("/haiku"), pays }));
      const change = (payload: object, accepted: object = {}) => ({
        ...good,
        accepted: { ...good.accepted, ...accepted },
        payload: { ...good.payload, ...payload },
      });
      const order = (members: object) => change({ authorization: { ...good.payload.authorization, ...members } });
      const flipped = `${good.payload.signature.slice(0, 10)}${good.payload.signature[10] === "0" ? "1" : "0"}${good.payload.signature.slice(11)}`;
      const bad = [
        order({ value: "1" }),
        order({ to: merchant }),
        order({ from: merchant }),
        order({ validAfter: "1" }),
        order({ validBefore: String(Number(good.payload.authorization.validBefore) + 3600) }),
        order({ nonce: `0x${"0".repeat(64)}` }),
        change({ signature: flipped }),
        change({ signature: `0x${"00".repeat(65)}` }),
        change({ permit2Authorization: { from: buyer.address } }),
        change({}, { scheme: "exact" }),
        change({}, { network: "eip155:1" }),
        { ...good, x402Version: 1 },
      ];
      for (const payment of bad.slice(0, -1)) expect((await send("/haiku", encodeHeader(payment))).status).toBe(402);
      expect((await send("/haiku", encodeHeader(bad.at(-1)))).status).toBe(400);
    }
    expect(await holdsBy(scene, buyer.address)).toBe(0);
  });

  test("A buyer without money gets a 402 with the reason", async () => {
    const poor = await newBuyer(scene.chain, 99_999n);
    const header = await signFor(shop, poor, { url: at("/haiku"), pays: "auth-capture" });
    const answer = await send("/haiku", header);
    const { error } = (await answer.json()) as { error: string };
    expect([answer.status, error]).toEqual([402, expect.stringMatching(/exceeds balance/)]);
  });

  test.each<[string, number, RequestInit, object | null]>([
    ["/broken", 500, {}, { error: "Internal Server Error" }],
    ["/gone", 410, {}, { detail: "sold out" }],
    ["/typed", 422, { body: '{"lines":"x"}', headers: { "content-type": "application/json" } }, null],
  ])("A response of %s is delivered with its status %i and refunded", async (path, status, ...[init, body]) => {
    const buyer = await newBuyer(scene.chain);
    const answer = await send(path, await signFor(shop, buyer, { url: at(path), pays: "auth-capture" }), init);
    expect([answer.status, answer.headers.get("x-escrow-decision")]).toEqual([status, "refund"]);
    const received = await answer.json();
    if (body !== null) expect(received).toEqual(body);
    await expect.poll(() => scene.chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  });

  test("Goods that the arbiter refunds never reach the buyer", async () => {
    const { response, id, decision } = await buyFrom(shop, await newBuyer(scene.chain), { url: at("/among") });
    expect([response.status, decision]).toEqual([500, "refund"]);
    expect(await response.json()).toMatchObject({ payment_id: id, withheld_status: 200, decision: "refund" });
  });

  test("A response to a typed body and a streamed response are sold complete", async () => {
    const buyer = await newBuyer(scene.chain);
    const init = { body: '{"lines":3}', headers: { "content-type": "application/json" } };
    const typed = await send("/typed", await signFor(shop, buyer, { url: at("/typed"), pays: "commerce" }), init);
    expect([typed.status, await typed.json()]).toEqual([200, { lines: 3 }]);
    const streamed = await send("/stream", await signFor(shop, buyer, { url: at("/stream"), pays: "commerce" }), {
      headers: { "if-none-match": "*", range: "bytes=0-0" },
    });
    expect([streamed.status, await streamed.text()]).toEqual([200, "An old"]);
  });

  test("While the arbiter is down, good responses are pending and others are withheld until it decides", async () => {
    scene.arbiter.become("down");
    const buyer = await newBuyer(scene.chain);
    const { response, header, id, decision } = await buyFrom(shop, buyer, { url: at("/haiku"), pays: "auth-capture" });
    expect([response.status, decision]).toEqual([200, "pending"]);
    const among = await signFor(shop, buyer, { url: at("/among"), pays: "auth-capture" });
    const kept = await send("/among", among);
    expect([kept.status, kept.headers.get("retry-after")]).toEqual([503, "5"]);
    scene.arbiter.become("fair");
    await expect.poll(() => statusOf(scene, id, "auth-capture")).toBe("released");
    expect((await send("/haiku", header)).headers.get("x-escrow-decision")).toBe("release");
    expect((await send("/among", among)).status).toBe(500);
    expect(runs(id)).toBe(1);
  });

  test("A buyer whose daily gas is spent gets no goods, and the next buyer does", async () => {
    const refused = { status: 429, body: { code: "payer_gas_spent" }, retryAfter: "3600" };
    scene.arbiter.become(refused);
    const [one, two] = await Promise.all([newBuyer(scene.chain), newBuyer(scene.chain)]);
    const header = await signFor(shop, one, { url: at("/haiku"), pays: "auth-capture" });
    expect((await send("/haiku", header)).status).toBe(503);
    scene.arbiter.become("fair");
    expect((await buyFrom(shop, two, { url: at("/haiku"), pays: "auth-capture" })).decision).toBe("release");
    expect((await send("/haiku", header)).status).toBe(200);
  });

  test("A payment that another process held is delivered, and one that it sold gets a 409", async () => {
    const account = privateKeyToAccount(merchantKey);
    const stuck = await openShop(scene, () => new Promise(() => undefined), { account });
    const buyer = await newBuyer(scene.chain);
    const header = await signFor(shop, buyer, { url: at("/haiku"), pays: "auth-capture" });
    void pay(stuck, header);
    await expect.poll(() => holdsBy(scene, buyer.address)).toBe(1);
    const answer = await send("/haiku", header);
    expect([answer.status, answer.headers.get("x-escrow-decision")]).toEqual([200, "release"]);
    const other = await openShop(scene, (c) => c.json({ haiku: "An old silent pond" }), { account });
    const { header: sold, id } = await buyFrom(other, await newBuyer(scene.chain));
    await expect.poll(() => statusOf(scene, id)).toBe("released");
    const late = await send("/haiku", sold);
    expect([late.status, await late.json()]).toMatchObject([
      409,
      { error: /was released, and its response is no longer/ },
    ]);
  });

  test.each(PAYS)("A payment by %s is one sale for every encoding of its header and its signature", async (pays) => {
    const buyer = await newBuyer(scene.chain);
    const header = await signFor(shop, buyer, { url: at("/haiku"), pays });
    const spelled = (form: (signature: Hex) => Hex): string => {
      const payment = decodeHeader(header);
      return encodeHeader({ ...payment, payload: { ...payment.payload, signature: form(payment.payload.signature) } });
    };
    expect((await send("/haiku", spelled(highS))).status).toBe(402);
    const fromZero = spelled((one) => `${one.slice(0, 130)}0${one.endsWith("1b") ? 0 : 1}` as Hex);
    const compact = spelled((one) => serializeCompactSignature(signatureToCompactSignature(parseSignature(one))));
    const url = header.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const answers = [
      await fetch(at("/haiku"), { method: "POST", headers: { "x-payment": fromZero } }),
      await send("/haiku", compact),
      await send("/haiku", url),
    ];
    expect(answers.map(({ status, headers }) => [status, headers.get("x-idempotent-replay")])).toEqual([
      [200, null],
      [200, "true"],
      [200, "true"],
    ]);
    // The terms are public now, so only the payer's own signature may fetch the goods again.
    for (const form of [highS, altered]) expect((await send("/haiku", spelled(form))).status).toBe(402);
    expect(await holdsBy(scene, buyer.address)).toBe(1);
  });

  test.each(PAYS)("A deployed smart wallet pays by %s, and may wrap its signature", async (pays) => {
    const [owner, stranger] = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())];
    const { address } = await deployWallet(scene.chain, owner.address);
    await scene.chain.fund(address, 1_000_000n);
    const forged = await signFor(shop, { ...stranger, address }, { url: at("/haiku"), pays });
    expect((await send("/haiku", forged)).status).toBe(402);
    const payment = decodeHeader(await signFor(shop, { ...owner, address }, { url: at("/haiku"), pays }));
    const bare = encodeHeader(payment);
    const { signature } = payment.payload;
    payment.payload.signature = serializeErc6492Signature({ address, data: "0x12", signature });
    const [answer, again] = [await send("/haiku", encodeHeader(payment)), await send("/haiku", bare)];
    expect([answer.status, answer.headers.get("x-escrow-decision")]).toEqual([200, "release"]);
    expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    expect(await scene.chain.usdcBalance(address)).toBe(900_000n);
  });

  test("Binary bodies and text that grows as JSON are evaluated unchanged", async () => {
    for (const path of ["/bytes", "/control"]) {
      const { response, decision } = await buyFrom(shop, await newBuyer(scene.chain), { url: at(path) });
      expect([path, response.status, decision]).toEqual([path, 200, "release"]);
      expect((await response.arrayBuffer()).byteLength).toBe(200_000);
    }
    const { response, decision } = await buyFrom(shop, await newBuyer(scene.chain), { url: at("/huge") });
    expect([response.status, decision, await response.text()]).toEqual([
      500,
      "refund",
      expect.stringContaining("larger than"),
    ]);
  });

  test("A refunded payment buys nothing", async () => {
    const buyer = await newBuyer(scene.chain);
    const { id, header } = await buyFrom(shop, buyer, { url: at("/broken"), pays: "auth-capture" });
    await expect.poll(() => statusOf(scene, id as Hex, "auth-capture")).toBe("refunded");
    expect((await send("/broken", header)).status).toBe(500);
    expect((await send("/haiku", header)).status).toBe(409);
  });
});
