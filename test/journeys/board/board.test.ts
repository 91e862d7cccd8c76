import { describe, expect, test } from "vitest";
import { ago, boardScene, type ListedAgent, seedWallet } from "../../support/board.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";

const scene = boardScene();

test("A board without a certified agent is an empty page", async () => {
  const { status, body, headers } = await scene.get("/board");
  expect([status, body.agents, body.next, body.limit, body.capability]).toEqual([200, [], null, 25, null]);
  expect(headers.get("link")).toBeNull();
});

test("A wallet that buys a certificate appears on the board and in the statistics", async () => {
  scene.clock = null;
  const payer = await newPayer(scene.chain);
  const bought = await post(`${scene.service.url}/test/basic`, v2(await signPayment(payer)));
  expect(bought.status).toBe(200);
  expect(await scene.board()).toEqual([
    {
      wallet: payer.address.toLowerCase(),
      capabilities: ["can_pay"],
      product: "basic",
      level: "Conformant",
      issued_at: bought.body.issued_at,
      valid_until: bought.body.valid_until,
      cert_url: bought.body.cert_url,
      badge_url: bought.body.badge_url,
      verify_url: `${scene.service.url}/verify?wallet=${payer.address.toLowerCase()}`,
    },
  ]);
  const { body } = await scene.get("/stats");
  expect(body.wallets).toEqual({ tested: 1, certified_now: 1 });
  expect(JSON.stringify(body)).not.toMatch(/0x[0-9a-f]{40}/i);
});

describe("GET /board", () => {
  test("Each wallet is listed once, with its newest PASS and every capability, newest first", async () => {
    const ids = await scene.seeder.add(
      { wallet: 1, issuedAt: ago(9) },
      { wallet: 2, issuedAt: ago(5) },
      { wallet: 1, issuedAt: ago(3), product: "suite" },
      { wallet: 3, issuedAt: ago(4) },
      { wallet: 1, issuedAt: ago(8) },
    );
    const agents = await scene.board();
    expect(agents.map(({ wallet }) => wallet)).toEqual([1, 3, 2].map(seedWallet));
    expect(agents[0]).toMatchObject({
      capabilities: ["can_pay", "full_suite"],
      product: "suite",
      cert_url: `${scene.service.url}/cert/${ids[2]}`,
      badge_url: `${scene.service.url}/badge/${ids[2]}.svg`,
      issued_at: "2026-11-18T12:00:00.000Z",
      valid_until: "2026-12-18T12:00:00.000Z",
    });
    expect(agents[1]?.capabilities).toEqual(["can_pay"]);
  });

  test("An expired certificate disappears at the instant when its 30 days end", async () => {
    await scene.seeder.add({ wallet: 1, issuedAt: ago(0) }, { wallet: 1, issuedAt: ago(20), product: "suite" });
    scene.clock = new Date(ago(-30).getTime() - 1);
    expect(await scene.board()).toMatchObject([{ wallet: seedWallet(1), capabilities: ["can_pay"] }]);
    scene.clock = ago(-30);
    expect(await scene.board()).toEqual([]);
  });

  test("A reversed PASS disappears, and an older valid one replaces it", async () => {
    const [alone = "", , newest = ""] = await scene.seeder.add(
      { wallet: 1, issuedAt: ago(1) },
      { wallet: 2, issuedAt: ago(5) },
      { wallet: 2, issuedAt: ago(2), product: "suite" },
    );
    expect(await scene.wallets()).toEqual([1, 2]);
    await scene.seeder.reverse(alone);
    await scene.seeder.reverse(newest);
    expect(await scene.board()).toMatchObject([{ wallet: seedWallet(2), product: "basic", capabilities: ["can_pay"] }]);
  });

  test("A PASS that depends on two payments disappears when the second one is reversed", async () => {
    const [id = ""] = await scene.seeder.add({ wallet: 1, issuedAt: ago(1), also: true });
    expect(await scene.wallets()).toEqual([1]);
    await scene.seeder.reverseAlso(id);
    expect(await scene.wallets()).toEqual([]);
    expect((await scene.get("/stats")).body.wallets).toEqual({ tested: 0, certified_now: 0 });
  });

  test("The board lists exactly the wallets that /verify reports as verified", async () => {
    const [reversed = "", reversedFail = ""] = await scene.seeder.add(
      { wallet: 4, issuedAt: ago(1) },
      { wallet: 6, issuedAt: ago(1), result: "fail" },
      { wallet: 6, issuedAt: ago(4) },
      // A FAIL that the payee may have caused.
      { wallet: 7, issuedAt: ago(1), product: "suite", result: "fail" },
      { wallet: 7, issuedAt: ago(5) },
      { wallet: 1, issuedAt: ago(2) },
      { wallet: 2, issuedAt: ago(2), result: "fail" },
      { wallet: 2, issuedAt: ago(1) },
      { wallet: 3, issuedAt: ago(31) },
      { wallet: 5, issuedAt: ago(31), result: "fail" },
      { wallet: 5, issuedAt: ago(3), product: "suite" },
    );
    for (const id of [reversed, reversedFail]) await scene.seeder.reverse(id);
    const listed = await scene.wallets();
    for (const wallet of [1, 2, 3, 4, 5, 6, 7]) {
      const { body } = await scene.get(`/verify?wallet=${seedWallet(wallet)}`);
      expect([wallet, listed.includes(wallet)]).toEqual([wallet, body.verified]);
    }
    expect(listed).toEqual([1, 5, 6, 7]);
    expect(await scene.wallets("?capability=can_pay")).toEqual([1, 6, 7]);
  });

  test("A capability filter lists the wallets that currently have it, with their newest certificate for it", async () => {
    const [suite] = await scene.seeder.add(
      { wallet: 1, issuedAt: ago(6), product: "suite" },
      { wallet: 1, issuedAt: ago(1) },
      { wallet: 2, issuedAt: ago(2) },
      { wallet: 3, issuedAt: ago(40), product: "suite" },
      { wallet: 3, issuedAt: ago(3) },
      { wallet: 4, issuedAt: ago(4), product: "suite" },
    );
    const { body } = await scene.get("/board?capability=full_suite");
    expect(body).toMatchObject({
      capability: "full_suite",
      agents: [
        { wallet: seedWallet(4), product: "suite" },
        { wallet: seedWallet(1), product: "suite", capabilities: ["can_pay", "full_suite"] },
      ],
    });
    expect((body.agents as readonly ListedAgent[])[1]?.cert_url).toBe(`${scene.service.url}/cert/${suite}`);
    expect(await scene.wallets("?capability=can_pay")).toEqual([1, 2, 3]);
  });
});

test.for(["/board", "/stats"])(
  "%s is a page for browsers and JSON for programs, with an ETag for revalidation",
  async (path) => {
    await scene.seeder.add({ wallet: 1, issuedAt: ago(1) });
    const json = await scene.get(path);
    const html = await scene.get(path, { accept: "text/html" });
    expect(json.headers.get("content-type")).toBe("application/json");
    expect(html.headers.get("content-type")).toMatch(/^text\/html/);
    expect(html.headers.get("content-security-policy")).toContain("default-src 'none'");
    for (const [answer, accept] of [
      [json, "*/*"],
      [html, "text/html"],
    ] as const) {
      expect(answer.headers.get("cache-control")).toMatch(/^public, max-age=\d\d$/);
      expect(answer.headers.get("vary")).toMatch(/accept/i);
      const etag = answer.headers.get("etag") ?? "";
      const again = await scene.get(path, { accept, "if-none-match": `"other", W/${etag}` });
      expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
      expect((await scene.get(path, { accept, "if-none-match": '"other"' })).status).toBe(200);
    }
    expect(json.headers.get("etag")).not.toBe(html.headers.get("etag"));
    expect((await scene.get(`${path}?format=json`, { accept: "text/html" })).headers.get("content-type")).toBe(
      "application/json",
    );
  },
);

test("A changed board has a new ETag", async () => {
  const before = await scene.get("/board");
  await scene.seeder.add({ wallet: 1, issuedAt: ago(1) });
  const after = await scene.get("/board", { "if-none-match": before.headers.get("etag") ?? "" });
  expect(after.status).toBe(200);
});
