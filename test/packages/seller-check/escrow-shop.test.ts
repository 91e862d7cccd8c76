import { serve } from "@hono/node-server";
import type { Handler } from "hono";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { escrowed, memoryStore } from "../../../packages/escrow/src/index.ts";
import { haiku, openShop, startSaleScene } from "../../support/escrow/sale.ts";

import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { holdExam, outcomes, untrue } from "../../support/sellers/held-exam.ts";

const scene = await forFile(startSaleScene());
const { chain, operator, escrow } = scene;
const ode = vi.fn(haiku);

async function examine(handler: Handler, contracts = [escrow.address, operator.address]) {
  const { app, account } = await openShop(scene, handler, { escrow: contracts });
  const terms = { account, rpcUrl: chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  app.post("/ode", escrowed({ ...terms, escrow: contracts, store: memoryStore() }, ode));
  const origin = await new Promise<string>((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
      resolve(`http://127.0.0.1:${port}`),
    );
    void forFile({ stop: () => server.close() });
  });
  const [url, other] = [`${origin}/haiku`, { url: `${origin}/ode`, method: "POST", body: "{}" }];
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 1_000_000n);
  const report = await holdExam(chain, { resource: { url, method: "POST" }, other, payer });
  return { report, payer: payer.address, merchant: account.address };
}

test("a shop that sells two routes at one price through an escrow is paid by auth-capture, and reaches the level full", async () => {
  const { report, payer, merchant } = await examine(haiku);
  expect(untrue(report)).toEqual([]);
  expect(outcomes(report)).toMatchObject({
    purchase: "pass",
    replay: "pass",
    binding: "pass",
    forgery: "pass",
    lost_answer: "pass",
  });
  expect(ode).not.toHaveBeenCalled();
  expect(report).toMatchObject({ level: "full", spent: 300_000n, terms: { payTo: merchant } });
  const paid = [...report.settled.values()].map(({ to, value }) => [to, value]);
  expect(paid).toEqual(Array.from({ length: 3 }, () => [COMMERCE_PAYMENTS.collector, 100_000n]));
  // Released to the merchant, less the arbiter's fee.
  await eventually(() => chain.usdcBalance(merchant), 297_000n);
  expect(await chain.usdcBalance(payer)).toBe(700_000n);
});

test("one whose goods its arbiter refunds sells nothing, and has charged nothing", async () => {
  const { report, payer } = await examine((c) => c.json({ error: "out of haiku" }, 500));
  expect(report.level).toBeNull();
  expect(untrue(report)).toEqual(["purchase: A payment as quoted is answered with the result, and got 500"]);
  expect(report.settled.size).toBe(1);
  expect([report.spent, await chain.usdcBalance(payer)]).toEqual([0n, 1_000_000n]);
});

test("one that sells by the scheme commerce alone is examined for its terms", async () => {
  const { report } = await examine(haiku, [escrow.address]);
  const { terms, ...paid } = outcomes(report);
  expect([terms, new Set(Object.values(paid))]).toEqual(["pass", new Set(["not_applicable"])]);
  expect(report.results[1]?.reason).toBe(
    "an entry has the scheme commerce, and this exam pays under exact and, in version 2, auth-capture",
  );
});
