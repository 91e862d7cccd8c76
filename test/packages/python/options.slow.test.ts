import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { Hono } from "hono";
import pg from "pg";
import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { escrowed, POSTGRES_TABLE, postgresStore } from "../../../packages/escrow/src/index.ts";
import { listen } from "../../support/escrow/real-shops.ts";
import {
  buyFrom,
  decodeHeader,
  encodeHeader,
  holdsBy,
  newBuyer,
  signFor,
  startSaleScene,
} from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { type PythonServer, pythonHome, pythonShops } from "../../support/packages/python.ts";
import { broadcast } from "../../support/payments/on-chain.ts";
import { freshDatabase } from "../../support/service/database.ts";

// Options that the Python seller shares with packages/escrow: the exact scheme, late keys, and a shared store.

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const home = await pythonHome();
const PRICE = 100_000n;
const PURSE = 1_000_000n;
const FRAMEWORKS = ["fastapi", "flask"] as const;
const SHOPS = { fastapi: "shop.py", flask: "flask_shop.py" } as const;

describe.skipIf(home === null)("a Python shop", async () => {
  if (home === null) return;
  const scene = await forFile(startSaleScene());
  const { chain } = scene;
  const rich = async (): Promise<`0x${string}`> => {
    const key = generatePrivateKey();
    await chain.setBalance(privateKeyToAccount(key).address, 10n ** 18n);
    return key;
  };
  const env = { BASE_RPC_URL: chain.rpcUrl, ARBITER_URL: scene.arbiter.url };
  const spent = async ({ address }: LocalAccount) => PURSE - (await chain.usdcBalance(address));
  const send = ({ url }: Pick<PythonServer, "url">, header: string, path = "/haiku") =>
    fetch(`${url}${path}`, { method: "POST", headers: { "payment-signature": header } });
  const runs = ({ printed }: PythonServer) => printed().filter((line) => line.startsWith("haiku 0x")).length;

  /**
   * Buys like an ordinary client, which does not know the escrow. With `send` false, the payment is signed but not
   * sent.
   */
  async function buyExactly(url: string, buyer: LocalAccount, { send: isSent = true } = {}) {
    let header = "";
    const watched: typeof fetch = async (input, init) => {
      const request = new Request(input, init);
      header = request.headers.get("payment-signature") ?? "";
      return header === "" || isSent ? fetch(request) : new Response("kept");
    };
    const client = new x402Client().register("eip155:*", new ExactEvmScheme(buyer));
    return { response: await wrapFetchWithPayment(watched, client)(url, { method: "POST" }), header };
  }

  async function submitted(header: string): Promise<void> {
    const { authorization: a, signature } = decodeHeader(header).payload;
    const times = { validAfter: BigInt(a.validAfter), validBefore: BigInt(a.validBefore) };
    await broadcast(chain, { authorization: { ...a, ...times, value: BigInt(a.value) }, signature });
  }

  describe.each(FRAMEWORKS)("a shop on %s", async (framework) => {
    const key = await rich();
    const merchant = privateKeyToAccount(key).address;
    const poorKey = generatePrivateKey();
    const { shop, keyless, late } = await pythonShops(home, here(SHOPS[framework]), {
      env,
      shops: {
        shop: { exact: true, key },
        keyless: { exact: true, late: true },
        late: { exact: true, late: true, key: await rich() },
        poor: { exact: true, key: poorKey },
      },
    });
    const haiku = `${shop.url}/haiku`;
    const signed = async () => {
      const buyer = await newBuyer(chain);
      return { buyer, ...(await buyExactly(haiku, buyer, { send: false })) };
    };

    test("It offers the exact scheme last and states what its buyer gives up", async () => {
      const unpaid = await fetch(haiku, { method: "POST" });
      const { accepts } = decodeHeader(unpaid.headers.get("payment-required") ?? "");
      expect(accepts.map(({ scheme }: { scheme: string }) => scheme)).toEqual(["auth-capture", "commerce", "exact"]);
      expect(accepts.at(-1).extra.withoutEscrow).toMatch(/without a hold.*arbiter.*refund/);
      expect(unpaid.headers.get("payment-required")?.length).toBeLessThanOrEqual(3_200);
      expect(await unpaid.text()).toContain("without its protection");
    });

    test("It is paid immediately and returns the same response for the same header", async () => {
      const [buyer, before] = [await newBuyer(chain), await chain.usdcBalance(merchant)];
      const { response, header } = await buyExactly(haiku, buyer);
      expect([response.status, await response.json()]).toEqual([200, { haiku: "An old silent pond" }]);
      const paid = decodeHeader(response.headers.get("payment-response") ?? "");
      expect(paid).toMatchObject({ success: true, amount: String(PRICE), payer: buyer.address });
      expect((await chain.client.getTransactionReceipt({ hash: paid.transaction })).status).toBe("success");
      expect(response.headers.get("x-escrow-decision")).toBeNull();
      expect(await chain.usdcBalance(merchant)).toBe(before + PRICE);
      const made = runs(shop);
      const again = await send(shop, header);
      expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
      expect((await send(shop, header, "/once-broken")).status).toBe(409);
      expect((await send(shop, header, "/haiku?other")).status).toBe(409);
      expect([await spent(buyer), runs(shop), await holdsBy(scene, buyer.address)]).toEqual([PRICE, made, 0]);
    });

    test("It is paid by the PyPI client, which does not know the escrow", async () => {
      const payer = generatePrivateKey();
      await chain.fund(privateKeyToAccount(payer).address, PURSE);
      const { stdout, stderr } = await home.run([here("ordinary_buyer.py"), haiku], { PAYER_PRIVATE_KEY: payer });
      expect(stderr).toBe("");
      expect(JSON.parse(stdout)).toMatchObject({ status: 200, body: expect.stringContaining("An old silent pond") });
      expect(await spent(privateKeyToAccount(payer))).toBe(PRICE);
    });

    test("Five copies of a payment are one sale", async () => {
      const { buyer, header } = await signed();
      const made = runs(shop);
      const answers = await Promise.all(Array.from({ length: 5 }, () => send(shop, header)));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      expect([await spent(buyer), runs(shop)]).toEqual([PRICE, made + 1]);
    });

    test("It charges nothing for a failure or for refused input, and the same payment buys later", async () => {
      const buyer = await newBuyer(chain);
      const { response, header } = await buyExactly(`${shop.url}/once-broken`, buyer);
      expect([response.status, await response.json()]).toEqual([500, { error: "no ink" }]);
      expect(response.headers.get("payment-response")).toBeNull();
      expect((await send(shop, header, "/once-broken?lines=4")).status).toBe(422);
      expect(await spent(buyer)).toBe(0n);
      expect((await send(shop, header, "/once-broken")).status).toBe(200);
      expect(await spent(buyer)).toBe(PRICE);
    });

    test("It delivers for a payment that a stranger submitted before or during the handler", async () => {
      const before = await signed();
      await submitted(before.header);
      expect((await send(shop, before.header)).status).toBe(200);
      const meanwhile = await signed();
      const made = runs(shop);
      const answer = send(shop, meanwhile.header);
      await expect.poll(() => runs(shop), { interval: 5 }).toBe(made + 1);
      await submitted(meanwhile.header);
      expect((await answer).status).toBe(200);
      expect([await spent(before.buyer), await spent(meanwhile.buyer)]).toEqual([PRICE, PRICE]);
    });

    test("It refuses a payment for other terms with a 402 and an unreadable one with a 400", async () => {
      const { buyer, header } = await signed();
      const changed = (order: object, payload: object = {}) => {
        const payment = decodeHeader(header);
        Object.assign(payment.payload.authorization, order);
        Object.assign(payment.payload, payload);
        return send(shop, encodeHeader(payment));
      };
      const made = runs(shop);
      for (const [order, why] of [
        [{ to: `0x${"11".repeat(20)}` }, "authorization.to"],
        [{ value: "99999" }, "authorization.value"],
        [{ validBefore: "1" }, "authorization.validBefore"],
        [{ validBefore: "99999999999" }, "authorization.validBefore"],
        [{ validAfter: "99999999999" }, "authorization.validAfter"],
        [{ nonce: `0x${"22".repeat(32)}` }, "cannot be made"],
        [{ from: `0x${"11".repeat(20)}` }, "cannot be made"],
      ] as const) {
        const refused = await changed(order);
        expect([order, refused.status, await refused.json()]).toMatchObject([
          order,
          402,
          { error: expect.stringContaining(why) },
        ]);
      }
      expect((await changed({}, { permit2Authorization: {} })).status).toBe(402);
      for (const order of [{ nonce: "x" }, { value: "-1" }, { from: 7 }])
        expect((await changed(order)).status).toBe(400);
      expect((await changed({}, { signature: "0x1" })).status).toBe(400);
      expect([await spent(buyer), runs(shop)]).toEqual([0n, made]);
    });

    test("It loads without a key if its options are functions, which the first request calls", async () => {
      expect((await fetch(`${keyless.url}/haiku`, { method: "POST" })).status).toBe(500);
      const { decision } = await buyFrom({ fetch }, await newBuyer(chain), {
        url: `${late.url}/haiku`,
        pays: "auth-capture",
      });
      expect(decision).toBe("release");
    });

    test("It warns in one line at its start if its account has no ETH", async () => {
      const { address } = privateKeyToAccount(poorKey);
      // The other shops in its process print nothing, because their accounts have ETH.
      await expect
        .poll(() => shop.printed().filter((line) => line.includes("ETH")), { timeout: 10_000 })
        .toEqual([
          `The merchant's account ${address} has 0 ETH, too little for the gas of a hold: sales fail until it has more.`,
        ]);
    });
  });

  test("Its store is shared with another process and with a TypeScript shop", async () => {
    const { ownerUrl } = await freshDatabase();
    const pool = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 4 }));
    await pool.query(POSTGRES_TABLE);
    const { stdout } = await home.run(["-c", "import agent_payment_trust.escrow as e; print(e.POSTGRES_TABLE)"]);
    expect(stdout.trim()).toBe(POSTGRES_TABLE.trim());
    const key = await rich();
    /** A process of the shop that uses the store. */
    const open = async (framework: keyof typeof SHOPS) => {
      const withStore = { env: { ...env, DATABASE_URL: ownerUrl }, shops: { shop: { exact: true, key } } };
      return (await pythonShops(home, here(SHOPS[framework]), withStore)).shop;
    };
    const shops = await Promise.all(FRAMEWORKS.map(open));
    const [fastapi = expect.fail(), flask = expect.fail()] = shops;
    const options = { account: privateKeyToAccount(key), price: "0.10", exact: true, rpcUrl: chain.rpcUrl };
    const sold = escrowed({ ...options, arbiterUrl: scene.arbiter.url, store: postgresStore(pool) }, () => {
      throw new Error("The Python shops have already delivered.");
    });
    const hono = await listen(getRequestListener(new Hono().post("/haiku", sold).fetch));
    const haiku = `${fastapi.url}/haiku`;
    const headers = [
      await signFor({ fetch }, await newBuyer(chain), { url: haiku, pays: "auth-capture" }),
      (await buyExactly(haiku, await newBuyer(chain), { send: false })).header,
    ];
    for (const [index, header] of headers.entries()) {
      const both = await Promise.all([fastapi, flask, fastapi, flask].map((shop) => send(shop, header)));
      expect(both.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(both.filter((one) => one.headers.get("x-idempotent-replay") === null)).toHaveLength(1);
      expect(runs(fastapi) + runs(flask)).toBe(index + 1);
      const [first] = both;
      const elsewhere = await fetch(hono.url, { method: "POST", headers: { "payment-signature": header } });
      expect([elsewhere.status, elsewhere.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
      expect(await elsewhere.json()).toEqual(await first?.json());
    }
    // A restart keeps every delivery.
    await Promise.all(shops.map(({ stop }) => stop()));
    const later = await open("fastapi");
    for (const header of headers) {
      const answer = await send(later, header);
      expect([answer.status, answer.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    }
    expect(runs(later)).toBe(0);
  });
});
