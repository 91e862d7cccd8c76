import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { memoryStore } from "../../../packages/escrow/src/index.ts";
import { escrowed } from "../../../packages/escrow/src/next.ts";
import { buyFrom, haiku, newBuyer, openShop, SHOP, startSaleScene } from "../../support/escrow/sale.ts";

import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const poor = () => privateKeyToAccount(generatePrivateKey());
const rich = await (async () => {
  const account = poor();
  await scene.chain.setBalance(account.address, 10n ** 18n);
  return account;
})();

/** A Next route that needs nothing from the environment but the service. */
function openRoute(options: object) {
  const logged: string[] = [];
  const common = { price: "0.10", arbiterUrl: scene.arbiter.url, store: memoryStore() };
  const log = (message: string) => void logged.push(message);
  const POST = escrowed({ ...common, rpcUrl: scene.chain.rpcUrl, account: rich, log, ...options }, async () =>
    Response.json({ haiku: "An old silent pond" }),
  );
  return { logged, fetch: (async (input, init) => POST(new Request(input, init), {})) as typeof fetch };
}

describe("keys", () => {
  test("Keys are read at the first request, so a build that loads the route needs none", async () => {
    const read: string[] = [];
    const noted = <T>(name: string, value: T) => {
      read.push(name);
      return value;
    };
    const route = openRoute({
      account: () => noted("account", rich),
      rpcUrl: () => noted("node", scene.chain.rpcUrl),
    });
    expect(read).toEqual([]);
    const { decision } = await buyFrom(route, await newBuyer(scene.chain));
    expect([decision, read]).toEqual(["release", ["account", "node"]]);
  });

  test("Keys that are missing at the first request raise an error on the server that names them", async () => {
    const route = openRoute({ account: () => privateKeyToAccount(undefined as never) });
    await expect(route.fetch(SHOP, { method: "POST" })).rejects.toThrow();
    const noNode = openRoute({ rpcUrl: () => undefined });
    await expect(noNode.fetch(SHOP, { method: "POST" })).rejects.toThrow(/rpcUrl or client/);
  });
});

describe("an account without ETH", () => {
  test("It is reported at the start, in one line", async () => {
    const account = poor();
    const { logged } = openRoute({ account });
    await eventually(() => logged.length, 1);
    expect(logged[0]).toMatch(new RegExp(`^The merchant's account ${account.address} has 0 ETH, too little .*\\.$`));
  });

  test("An account with enough ETH is not reported, and neither is one that does not send the holds", async () => {
    const { logged } = openRoute({});
    const other = openRoute({ account: poor(), hold: async () => "0x" });
    await scene.chain.client.getBlockNumber();
    await other.fetch(SHOP, { method: "POST" });
    expect([logged, other.logged]).toEqual([[], []]);
  });
});

test("An unpaid caller never gets the advice to send the same header again", async () => {
  const shop = await openShop(scene, haiku);
  const answers = [await shop.fetch(SHOP, { method: "POST" })];
  scene.arbiter.stop();
  answers.push(await (await openShop(scene, haiku)).fetch(SHOP, { method: "POST" }));
  expect(answers.map(({ status }) => status)).toEqual([402, 503]);
  for (const answer of answers) expect(await answer.text()).not.toMatch(/not sign again|same header/i);
});
