import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { contest, signedDeliveryOf } from "../../../packages/escrow/src/index.ts";
import { buyFrom, holdsBy, newBuyer, signFor, startSaleScene, statusOf } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { pythonHome, pythonShops } from "../../support/packages/python.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const home = await pythonHome();
interface Vector {
  readonly accepts: object;
  readonly paymentInfo: { readonly salt: string };
  readonly nonce: string;
  readonly payment_id: string;
  readonly authorization: { readonly digest: string };
  readonly delivery: { readonly signature: string };
}

describe.skipIf(home === null)("a Python shop", async () => {
  if (home === null) return;
  const scene = await forFile(startSaleScene());
  const key = generatePrivateKey();
  const merchant = privateKeyToAccount(key).address;
  await scene.chain.setBalance(merchant, 10n ** 18n);
  const env = { BASE_RPC_URL: scene.chain.rpcUrl, ARBITER_URL: scene.arbiter.url };
  const start = (script: string) => pythonShops(home, here(script), { env, shops: { shop: { key } } });
  const [{ shop: flask }, { shop: fastapi }] = await Promise.all([start("flask_shop.py"), start("shop.py")]);
  const shop = { fetch };
  const at = (path: string) => `${flask.url}${path}`;
  const runs = (id: string | null) => flask.printed().filter((line) => line.endsWith(String(id))).length;
  const send = (path: string, header: string, init: RequestInit = {}) =>
    fetch(at(path), { method: "POST", ...init, headers: { "payment-signature": header, ...init.headers } });

  test("The Python package computes every value of the published vectors", async () => {
    const file = fileURLToPath(new URL("../../vectors/escrow.json", import.meta.url));
    const { vectors } = JSON.parse(await readFile(file, "utf8"));
    const { stdout, stderr } = await home.run([here("escrow_vectors.py"), file]);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual(
      vectors.map(({ accepts, paymentInfo, nonce, payment_id, authorization, delivery }: Vector) => ({
        ...{ accepts, nonce, payment_id, salt: paymentInfo.salt, digest: authorization.digest, is_signed: true },
        delivery: delivery.signature,
      })),
    );
  });

  test("A buyer pays the Flask shop once, even if it repeats its request", async () => {
    const buyer = await newBuyer(scene.chain);
    const pays = "auth-capture";
    const { response, header, id, decision } = await buyFrom(shop, buyer, { url: at("/haiku"), pays });
    expect(response.headers.get("x-own")).toBe("1");
    expect(response.headers.get("set-cookie")).toMatch(/^session=/);
    expect([response.status, await response.json(), decision]).toEqual([
      200,
      { haiku: "An old silent pond" },
      "release",
    ]);
    await expect.poll(() => statusOf(scene, id, pays)).toBe("released");
    for (const again of await Promise.all([1, 2, 3].map(() => send("/haiku", header))))
      expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    expect((await send("/stream", header)).status).toBe(409);
    expect([runs(id), await holdsBy(scene, buyer.address)]).toEqual([1, 1]);
  });

  test("A Flask view gets its arguments and its body, without conditions", async () => {
    const header = await signFor(shop, await newBuyer(scene.chain), { url: at("/echo/frog"), pays: "commerce" });
    const headers = { "content-type": "application/json", "if-none-match": "*" };
    const answer = await send("/echo/frog", header, { body: '{"lines":3}', headers });
    expect([answer.status, await answer.json()]).toEqual([200, { name: "frog", body: { lines: 3 }, conditions: 0 }]);
    const streamed = await buyFrom(shop, await newBuyer(scene.chain), { url: at("/stream") });
    expect(await streamed.response.text()).toBe("An old");
  });

  test("The Flask shop refuses input before anything is held, and a check that raises is a 500", async () => {
    const buyer = await newBuyer(scene.chain);
    const header = await signFor(shop, buyer, { url: at("/haiku"), pays: "auth-capture" });
    for (const [query, status] of [
      ["?lines=4", 422],
      ["?lines=none", 500],
    ] as const)
      for (const answer of [
        await fetch(at(`/haiku${query}`), { method: "POST" }),
        await send(`/haiku${query}`, header),
      ])
        expect([query, answer.status, answer.headers.get("payment-required")]).toEqual([query, status, null]);
    expect(await holdsBy(scene, buyer.address)).toBe(0);
    const large = { body: new Uint8Array(16 * 1024 * 1024 + 1) };
    expect((await send("/haiku", header, large)).status).toBe(413);
    expect((await send("/haiku", header)).status).toBe(200);
  });

  test.each([
    ["/broken", 500],
    ["/gone", 410],
    ["/among", 500],
  ])("The Flask shop's response of %s is refunded", async (path, status) => {
    const buyer = await newBuyer(scene.chain);
    const { response, decision } = await buyFrom(shop, buyer, { url: at(path) });
    expect([response.status, decision]).toEqual([status, "refund"]);
    expect(await response.text()).not.toContain("pond");
    await expect.poll(() => scene.chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  });

  describe.each([
    ["Flask", flask.url, "commerce"],
    ["FastAPI", fastapi.url, "auth-capture"],
  ] as const)("a window to contest in %s", (_, url, pays) => {
    test("The shop is judged by its promise", async () => {
      for (const [path, expected] of [
        ["/pond", "release"],
        ["/lake", "refund"],
      ] as const) {
        const buyer = await newBuyer(scene.chain);
        const { response, id, decision } = await buyFrom(shop, buyer, { url: `${url}${path}`, pays });
        expect([response.status, decision]).toEqual([200, "release"]);
        expect(response.headers.get("x-escrow-contest")).toBe(`${scene.arbiter.url}/escrow/contest/${id}`);
        expect(await statusOf(scene, id, pays)).toBe("held");
        const at = { account: buyer, arbiterUrl: scene.service.url, paymentId: id };
        expect(await contest({ ...at, claim: { category: "expect" } })).toMatchObject({ decision: expected });
        await expect.poll(() => statusOf(scene, id, pays)).toBe(expected === "release" ? "released" : "refunded");
      }
    });
  });

  test("The buyer gets the forwarded delivery with the shop's signature", async () => {
    const buyer = await newBuyer(scene.chain);
    const { response, id } = await buyFrom(shop, buyer, { url: `${fastapi.url}/pond`, pays: "auth-capture" });
    const delivery = signedDeliveryOf(response) ?? expect.fail("Nothing is signed.");
    const at = { account: buyer, arbiterUrl: scene.service.url, paymentId: id };
    const outcome = await contest({ ...at, claim: { category: "payload-hash", delivery } });
    expect(outcome.decision).toBe("release");
  });
});
