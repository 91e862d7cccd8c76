import { describe, expect, test } from "vitest";
import { ago, boardScene, type ListedAgent } from "../../support/board.ts";
import { expectProblem } from "../../support/payments/expectations.ts";

const scene = boardScene();

/** Follows `next` from the first page on. */
async function walk(start: string, between: (page: number) => Promise<unknown>): Promise<readonly number[]> {
  const seen: number[] = [];
  let next: string | null = start;
  for (let page = 1; next !== null; page++) {
    const answer = await scene.get(next);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("link")).toBe(answer.body.next === null ? null : `<${answer.body.next}>; rel="next"`);
    seen.push(...(answer.body.agents as readonly ListedAgent[]).map(({ wallet }) => Number(wallet)));
    next = answer.body.next as string | null;
    await between(page);
  }
  return seen;
}

describe("paging", () => {
  const COUNT = 40;
  const all = Array.from({ length: COUNT }, (_, index) => index + 1);
  /** Wallets 1 to 40, the newest first; each three share an instant. */
  const seedAll = () =>
    scene.seeder.add(...all.map((wallet) => ({ wallet, issuedAt: ago(1 + Math.floor(wallet / 3)) })).toReversed());

  test.for([1, 7, 39, 40, 100])("by %d shows every agent once, in order", async (limit) => {
    await seedAll();
    const pages: number[] = [];
    const seen = await walk(`/board?limit=${limit}`, async (page) => pages.push(page));
    expect(seen.toSorted((a, b) => a - b)).toEqual(all);
    expect(seen.map((wallet) => Math.floor(wallet / 3))).toEqual(
      all.map((wallet) => Math.floor(wallet / 3)).toSorted((a, b) => a - b),
    );
    expect(pages).toHaveLength(Math.ceil(COUNT / limit));
  });

  test("misses and repeats nobody while certificates arrive, for wallets known and new", async () => {
    await seedAll();
    const seen = await walk("/board?limit=6", (page) =>
      scene.seeder.add(
        { wallet: 100 + page, issuedAt: ago(0) },
        { wallet: 3, issuedAt: ago(0.5) },
        { wallet: COUNT - page, issuedAt: ago(0) },
        { wallet: COUNT - page, issuedAt: ago(0), product: "suite" },
      ),
    );
    expect(seen.toSorted((a, b) => a - b)).toEqual(all);
    expect((await scene.wallets("?limit=100")).toSorted((a, b) => a - b)).toEqual([
      ...all,
      101,
      102,
      103,
      104,
      105,
      106,
      107,
    ]);
  });

  test("leaves out wallets that fail or are reversed in the meantime", async () => {
    const ids = await seedAll();
    const seen = await walk("/board?limit=10", async (page) => {
      if (page > 1) return;
      await scene.seeder.add({ wallet: 38, issuedAt: ago(0), result: "fail" });
      await scene.seeder.reverse(ids[COUNT - 39] ?? "");
    });
    expect(seen.toSorted((a, b) => a - b)).toEqual(all.filter((wallet) => wallet !== 38 && wallet !== 39));
  });

  test("keeps the capability, the limit and the format that were asked for", async () => {
    await seedAll();
    const { body } = await scene.get("/board?capability=can_pay&limit=5&format=json");
    const next = new URL(String(body.next));
    expect(Object.fromEntries(next.searchParams)).toEqual({
      capability: "can_pay",
      limit: "5",
      format: "json",
      cursor: expect.stringMatching(/^[\w-]+$/),
    });
    next.searchParams.set("capability", "full_suite");
    expectProblem(await scene.get(next.href), 400, "malformed_request");
  });
});

test.for([
  ["limit=0", "from 1 to 100"],
  ["limit=101", "from 1 to 100"],
  ["limit=-1", "from 1 to 100"],
  ["limit=2.5", "from 1 to 100"],
  ["limit=ten", "from 1 to 100"],
  ["limit=", "from 1 to 100"],
  ["cursor=", "come from `next`"],
  ["cursor=nonsense", "come from `next`"],
  [`cursor=${Buffer.from("1.zz.1.zz.any").toString("base64url")}`, "come from `next`"],
  ["capability=", "one of can_pay"],
  ["capability=flying", "one of can_pay"],
] as const)("/board?%s is 400 and says what is expected", async ([query, expected]) => {
  const answer = await scene.get(`/board?${query}`);
  expectProblem(answer, 400, "malformed_request");
  expect(answer.body.detail).toContain(expected);
});
