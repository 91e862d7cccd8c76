import { fileURLToPath } from "node:url";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { type HDAccount, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { devAccount, privateKeyOf } from "../../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { pythonHome, pythonShops } from "../../support/packages/python.ts";
import { encode } from "../../support/payments/requests.ts";
import { serveFacilitator } from "../../support/sellers/stock-facilitator.ts";
import { startService } from "../../support/service/service.ts";
import { STOCK_CLIENTS } from "../../support/sessions/agents.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const home = await pythonHome();

/** The shop's wallet, without a balance at the start. */
const SHOP = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const HAIKU = { haiku: "An old silent pond" };
const [VERIFIED, UNTESTED, FAILED] = [devAccount(1), devAccount(2), devAccount(3)];

describe.skipIf(home === null)("the gate in Python", async () => {
  if (home === null) return;
  const { run } = home;
  const chain = await forFile(startTestChain());
  const service = await forFile(startService({ chain }));
  const facilitator = await forFile(serveFacilitator(chain));
  const down = `http://127.0.0.1:${await freePort()}`;
  for (const account of [VERIFIED, FAILED]) await STOCK_CLIENTS[0]?.post(`${service.url}/test/basic`, account);
  // This client has no price limit, so it signs the overpriced bait of the scam test.
  const signsAll = STOCK_CLIENTS.find(({ name }) => name === "@x402/axios") ?? expect.fail();
  const start = await signsAll.post(`${service.url}/test/scam/start`, FAILED);
  const { url: attempt } = start.body.next as { url: string };
  for (const _ of [1, 2]) await signsAll.post(attempt, FAILED).catch(() => null);

  /** The response of a trust service that cannot be believed. */
  let answer: readonly [body: string | null, status: number] = [null, 500];
  const fake = await serveHttp((request, response) => {
    const wallet = new URL(request.url ?? "", "http://x").searchParams.get("wallet");
    const [body, status] = answer;
    const location = `${service.url}/verify?wallet=${VERIFIED.address}`;
    response.writeHead(status, status === 302 ? { location } : {});
    response.end(body === "twice" ? `{"wallet":"${wallet}","verified":false,"verified":true}` : body);
  });
  await forFile(fake);
  const SETTINGS = {
    standard: { service: service.url },
    cut: { service: down },
    requiring: { service: service.url, require: ["can_pay", "retry_safety"] },
    skipping: { service: service.url, skips: true },
    misled: { service: fake.url },
  };
  const FRAMEWORKS = ["fastapi", "flask"];
  const shops = await pythonShops(home, here("gate_shop.py"), {
    env: { FACILITATOR_URL: facilitator.url, SHOP },
    shops: Object.fromEntries(
      FRAMEWORKS.flatMap((framework) =>
        Object.entries(SETTINGS).map(([name, one]) => [`${framework} ${name}`, { framework, ...one }]),
      ),
    ),
  });
  const shopOn = (framework: string, name: keyof typeof SETTINGS) => shops[`${framework} ${name}`] ?? expect.fail();

  type Json = Readonly<Record<string, unknown>>;
  /** The stock client's payment for the shop's terms. */
  async function signed(url: string, payer: HDAccount, extra: Json = {}) {
    const header = (await fetch(url, { method: "POST" })).headers.get("payment-required") ?? "";
    const [accepted] = JSON.parse(Buffer.from(header, "base64").toString()).accepts;
    const terms = { ...accepted, extra: { ...accepted.extra, ...extra } };
    const { payload } = await new ExactEvmScheme(payer).createPaymentPayload(2, terms);
    return { x402Version: 2, accepted, payload: payload as Json };
  }
  const sent = (payment: unknown): Record<string, string> => ({ "payment-signature": encode(payment) });
  const decoy = { from: VERIFIED.address };

  type Make = (url: string, payer: HDAccount) => Promise<Record<string, string>>;
  const altered =
    (change: (payload: Json, permit2: Json) => unknown): Make =>
    async (url, payer) => {
      const good = await signed(url, payer);
      const { payload } = await signed(url, payer, { assetTransferMethod: "permit2" });
      return sent({ ...good, payload: change(good.payload, payload) });
    };
  const withOrder = (change: (authorization: Json) => Json) =>
    altered(({ authorization, ...rest }) => ({ ...rest, authorization: change(authorization as Json) }));
  /**
   * The status for a verified wallet, for one with a FAIL, for an untested one, and for a verified one without the
   * service.
   */
  const FORMS: readonly (readonly [string, Make, readonly [number, number, number, number]])[] = [
    ["no header", async () => ({}), [402, 402, 402, 402]],
    ["version 2", async (url, payer) => sent(await signed(url, payer)), [200, 403, 403, 503]],
    [
      "version 1",
      async (url, payer) => {
        const { payload } = await signed(url, payer);
        return { "x-payment": encode({ x402Version: 1, scheme: "exact", network: "base", payload }) };
      },
      [402, 402, 402, 402],
    ],
    [
      "version 1 in the header of version 2",
      async (url, payer) => {
        const { payload } = await signed(url, payer);
        return sent({ x402Version: 1, scheme: "exact", network: "eip155:8453", payload });
      },
      // The PyPI server itself fails on this header.
      [500, 500, 500, 500],
    ],
    [
      "a byte-order mark",
      async (url, payer) => {
        const text = `\ufeff${JSON.stringify(await signed(url, payer))}`;
        return { "payment-signature": Buffer.from(text).toString("base64") };
      },
      [402, 402, 402, 402],
    ],
    ["garbage", async () => ({ "payment-signature": "garbage!" }), [402, 402, 402, 402]],
    ["an empty payload", altered(() => ({})), [403, 403, 403, 403]],
    ["a decoy next to Permit2", altered((_, permit2) => ({ authorization: decoy, ...permit2 })), [403, 403, 403, 403]],
    ["Permit2 as a decoy", altered((payload) => ({ ...payload, permit2Authorization: decoy })), [403, 403, 403, 403]],
    ["a decoy in another case", altered((payload) => ({ ...payload, Authorization: decoy })), [403, 403, 403, 403]],
    ["two wallets in one order", withOrder((order) => ({ From: VERIFIED.address, ...order })), [403, 403, 403, 403]],
    ["a list for an address", withOrder((order) => ({ ...order, from: [order.from] })), [403, 403, 403, 403]],
    ["a wallet that signed nothing", withOrder((order) => ({ ...order, ...decoy })), [200, 402, 402, 503]],
  ];

  describe.each(FRAMEWORKS)("%s", (framework) => {
    const { url: shop, printed } = shopOn(framework, "standard");
    const { url: cut } = shopOn(framework, "cut");
    const post = (url: string, headers: Record<string, string>) => fetch(`${url}/haiku`, { method: "POST", headers });

    test("It sells only to a verified wallet, in every form of payment", async () => {
      for (const [form, make, [verified, fail, untested, without]] of FORMS) {
        const cases = [
          ["verified", shop, VERIFIED, verified],
          ["FAIL", shop, FAILED, fail],
          ["untested", shop, UNTESTED, untested],
          ["service down", cut, VERIFIED, without],
        ] as const;
        for (const [wallet, url, payer, status] of cases) {
          const [held, served] = [await chain.usdcBalance(SHOP), printed().length];
          const answer = await post(url, await make(`${shop}/haiku`, payer));
          expect([form, wallet, answer.status]).toEqual([form, wallet, status]);
          const isSold = status === 200;
          expect([form, wallet, (await chain.usdcBalance(SHOP)) - held]).toEqual([form, wallet, isSold ? 10_000n : 0n]);
          if (url === shop) expect([form, wallet, printed().length - served]).toEqual([form, wallet, isSold ? 1 : 0]);
          const body = (await answer.json()) as { readonly error?: string };
          if (isSold) expect(body).toEqual(HAIKU);
          if (status === 403 || status === 503) expect(body.error).toMatch(/Nothing was charged\.$/);
          if (status === 503) expect(answer.headers.get("retry-after")).toBe("5");
        }
      }
    });

    test("A refusal includes the service's reasons", async () => {
      for (const [payer, code] of [
        [FAILED, "current_fail"],
        [UNTESTED, "never_tested"],
      ] as const) {
        const found = await fetch(`${service.url}/verify?wallet=${payer.address}`);
        const { reasons } = (await found.json()) as { readonly reasons: unknown };
        const answer = await post(shop, sent(await signed(`${shop}/haiku`, payer)));
        expect([answer.status, answer.headers.get("cache-control")]).toEqual([403, "no-store"]);
        expect(await answer.json()).toEqual({
          error: `Wallet ${payer.address} is not verified. Nothing was charged.`,
          wallet: payer.address,
          missing: ["verified"],
          reasons,
          how_to_test: `${service.url}/inspect`,
        });
        expect(reasons).toMatchObject([{ code }]);
      }
    });

    test("A HEAD request to a GET route must be paid for too, and free routes stay free", async () => {
      const head = (headers: Record<string, string>) => fetch(`${shop}/haiku`, { method: "HEAD", headers });
      const served = printed().length;
      expect((await head({})).status).toBe(402);
      expect((await head(sent(await signed(`${shop}/haiku`, FAILED)))).status).toBe(403);
      expect(printed().length).toBe(served);
      expect(await (await fetch(`${shop}/free`)).json()).toEqual(HAIKU);
      expect(await (await fetch(`${cut}/free`)).json()).toEqual(HAIKU);
    });

    test("With a required capability, the wallet must still be verified", async () => {
      const { url } = shopOn(framework, "requiring");
      const answer = await post(url, sent(await signed(`${url}/haiku`, VERIFIED)));
      expect([answer.status, await answer.json()]).toMatchObject([
        403,
        { error: /no current PASS for retry_safety/, missing: ["retry_safety"], reasons: [] },
      ]);
    });

    test("A shop with a hook that verifies payments before the gate sells nothing", async () => {
      const { url } = shopOn(framework, "skipping");
      const [held, served] = [await chain.usdcBalance(SHOP), printed().length];
      const answer = await post(url, sent(await signed(`${url}/haiku`, FAILED)));
      expect([answer.status, await answer.json()]).toEqual([500, { error: "The gate did not judge this payment." }]);
      expect([printed().length, await chain.usdcBalance(SHOP)]).toEqual([served, held]);
    });

    test.each<[string, string | null, number]>([
      ["the record of another wallet", `{"wallet":"${VERIFIED.address}","verified":true}`, 200],
      ["a page", "<!doctype html>", 200],
      ["a duplicate member", "twice", 200],
      ["an error", '{"verified":true}', 500],
      ["a redirect", null, 302],
    ])("No wallet is admitted if the service returns %s", async (_, ...returned) => {
      answer = returned;
      const { url } = shopOn(framework, "misled");
      expect((await post(url, sent(await signed(`${url}/haiku`, UNTESTED)))).status).toBe(503);
    });
  });

  test("An invalid service URL or requirement is refused when the shop starts", async () => {
    const gate = (text: string) => run(["-c", `from agent_payment_trust.gate import Gate; Gate(${text})`]);
    expect((await gate('"trust.example"')).stderr).toContain("expected an origin like https://trust.example");
    expect((await gate(`"${service.url}", ["solvent"]`)).stderr).toContain('"solvent" cannot be required');
    expect((await gate(`"${service.url}", "can_pay"`)).code).toBe(0);
  });

  test("The stock clients of both languages buy with a verified wallet", async () => {
    const { url } = shopOn("fastapi", "standard");
    const script = `
import asyncio, os
from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402HttpxClient
from x402.mechanisms.evm.exact import ExactEvmScheme
async def main():
    client = x402Client().register("eip155:*", ExactEvmScheme(Account.from_key(os.environ["KEY"])))
    async with x402HttpxClient(client, timeout=60) as http:
        print((await http.post("${url}/haiku")).status_code)
asyncio.run(main())`;
    for (const [ordinal, status] of [
      [1, "200"],
      [3, "403"],
    ] as const) {
      const key = privateKeyOf(devAccount(ordinal));
      expect(privateKeyToAccount(key).address).toBe(devAccount(ordinal).address);
      expect((await run(["-c", script], { KEY: key })).stdout).toBe(`${status}\n`);
    }
    expect(await STOCK_CLIENTS[0]?.post(`${url}/haiku`, VERIFIED)).toEqual({ status: 200, body: HAIKU });
  });
});
