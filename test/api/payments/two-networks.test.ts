import { Hono } from "hono";
import { getAddress } from "viem";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { MENU } from "../../../api/cafe/menu.ts";
import { payable } from "../../../api/payments/payable.ts";
import { createOfferReceipt } from "../../../api/payments/receipt.ts";
import { EXACT } from "../../../api/payments/schemes/exact.ts";
import { paidRoute } from "../../../api/platform/http/route.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const SEPOLIA = NETWORKS["eip155:84532"];
const { price } = MENU.espresso;

const chain = await forFile(startTestChain({ network: SEPOLIA.id }));
const service = await startService({ chain });
afterAll(() => service.stop());

/** The café's espresso route, also payable on Base. */
const route = paidRoute({
  id: "order.espresso",
  method: "POST",
  path: "/order/espresso",
  terms: { networks: ["eip155:8453", SEPOLIA.id], price },
  summary: "",
  description: "",
  input: z.unknown(),
  output: {},
  example: { input: {}, output: {} },
  sell: () => Promise.reject(new Error("the service sells it")),
});
const app = new Hono().post(
  route.path,
  payable(route, {
    gate: service.gate,
    schemes: new Map([[EXACT.id, EXACT]]),
    usdc: { closed: () => null },
    payTo: PAY_TO,
    baseUrl: service.config.baseUrl,
    offerReceipt: createOfferReceipt(async (payload) => payload),
    now: () => new Date(),
    peers: { clientOf: () => "somebody" },
    log: { warn: () => undefined },
  }),
);
const order = (headers: Record<string, string> = {}) => app.request(route.path, { method: "POST", headers });
const on = ({ id, usdc }: typeof SEPOLIA) => ({
  network: id,
  asset: usdc.address,
  extra: { name: usdc.name, version: usdc.version },
});

describe("A route with two networks", () => {
  test("A 402 offers the price on each network in both versions, with the preferred network first", async () => {
    const unpaid = await order();
    expect(unpaid.status).toBe(402);
    const header = Buffer.from(unpaid.headers.get("payment-required") ?? "", "base64").toString("utf8");
    const terms = Object.values(NETWORKS).map(({ id, key, usdc }) => ({ id, key, asset: getAddress(usdc.address) }));
    expect(JSON.parse(header).accepts).toMatchObject(
      terms.map(({ id, asset }) => ({ scheme: "exact", network: id, asset, amount: String(price) })),
    );
    expect((await unpaid.json()) as object).toMatchObject({
      accepts: terms.map(({ key, asset }) => ({ network: key, asset, maxAmountRequired: String(price) })),
    });
  });

  test("A payment on the second network is accepted", async () => {
    const payer = await newPayer(chain);
    const signed = await signPayment(payer, { value: price }, SEPOLIA);
    const answer = await order(v2(signed, { accepted: on(SEPOLIA) }));
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 200,
      body: { item: "espresso" },
    });
    expect((await settlements(chain, payer.address)).map(({ value }) => value)).toEqual([price]);
  });

  test("A signature for one network does not pay on the other", async () => {
    const payer = await newPayer(chain);
    const signed = await signPayment(payer, { value: price }, NETWORKS["eip155:8453"]);
    const answer = await order(v2(signed, { accepted: on(SEPOLIA) }));
    expect(answer.status).toBe(402);
    await nothingCharged(chain, payer.address);
  });
});
