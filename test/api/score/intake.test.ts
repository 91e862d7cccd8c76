import { describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const COSTS = { "/score": PRICES.score, "/score/batch": PRICES.scores } as const;
type Path = keyof typeof COSTS;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const payer = await newPayer(chain);

/** A wallet address by number, valid in any letter case. */
const wallet = (n: number): string => `0x${n.toString(16).padStart(40, "a")}`;
const wallets = (count: number): string[] => Array.from({ length: count }, (_, n) => wallet(n));

async function ask(path: Path, body: unknown, query = ""): Promise<Answer> {
  const signed = await signPayment(payer, { value: COSTS[path] });
  return post(`${service.url}${path}${query}`, v2(signed), body === undefined ? null : JSON.stringify(body));
}

describe("request that cannot be scored", () => {
  test.each([
    ["no wallet", "/score", {}, "", 400, ["wallet"]],
    ["no body", "/score", undefined, "", 400, [""]],
    ["an invalid wallet", "/score", { wallet: "0x12" }, "", 400, ["wallet"]],
    ["an invalid wallet in the query", "/score", undefined, "?wallet=vitalik.eth", 400, ["wallet"]],
    ["an empty batch", "/score/batch", { wallets: [] }, "", 422, ["wallets"]],
    ["26 wallets", "/score/batch", { wallets: wallets(26) }, "", 422, ["wallets"]],
    [
      "two malformed wallets",
      "/score/batch",
      { wallets: [wallet(1), "x", wallet(2), `${wallet(3)}0`] },
      "",
      400,
      ["wallets.1", "wallets.3"],
    ],
    [
      "repeated wallets in any letter case",
      "/score/batch",
      { wallets: [wallet(1), wallet(2), wallet(1).replaceAll("a", "A"), wallet(2)] },
      "",
      422,
      ["wallets.2", "wallets.3"],
    ],
  ] as const)("A request with %s is rejected before any charge", async (...[_, path, body, query, status, paths]) => {
    const answer = await ask(path, body, query);
    expectProblem(answer, status, status === 400 ? "malformed_request" : "unacceptable");
    expect((answer.body.errors as { path: string }[]).map((error) => error.path)).toEqual(paths);
    await nothingCharged(chain, payer);
  });

  test("A query that names a different wallet than the body is a 400 without a charge", async () => {
    expectProblem(await ask("/score", { wallet: wallet(1) }, `?wallet=${wallet(2)}`), 400, "malformed_request");
    await nothingCharged(chain, payer);
  });
});

test.each([
  ["/score", { wallet: wallet(1) }, ""],
  ["/score", undefined, `?wallet=${wallet(1)}`],
  ["/score/batch", { wallets: wallets(25) }, ""],
] as const)("%s without an index is a 503 with Retry-After, and nothing is charged", async (path, body, query) => {
  const answer = await ask(path, body, query);
  expectProblem(answer, 503, "not_available");
  expect(answer.body.detail).toMatch(/index.*Nothing was charged/);
  expect(answer.headers.get("retry-after")).toBe("5");
  await nothingCharged(chain, payer);
});
