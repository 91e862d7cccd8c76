import { describe, expect, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { between, call, connectLocal } from "../../support/packages/mcp.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

// Uses a real index of a real chain. A score is bought, recomputed, and passed on only if both agree.

interface Party {
  readonly wallet: string;
  readonly score: number;
  readonly tier: string;
}

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const database = await freshDatabase();
const indexer = await forFile(launchIndexerOf({ chain, database }));
await indexer.untilLogged("index ready");
// The service starts after the index is ready, because it would otherwise wait a second before it looks again.
const service = await forFile(startService({ chain, database }));
const payer = await newPayer(chain);
const wallet = payer.address.toLowerCase();

const stranger = (n: number): string => `0x${String(n).padStart(40, "b")}`;

test("score_wallet pays the price and returns the recomputed record", async () => {
  const client = await connectLocal({ service: between(service.url, (answer) => answer), payer });
  expect(await call(client, "certify", { test: "suite" })).toMatchObject({ isError: false });
  const { text, structured } = await call(client, "score_wallet", { wallet: payer.address });
  expect(structured, text).toMatchObject({
    status: "paid",
    price: { amount_usd: formatUsd(PRICES.score) },
    budget: { spent_usd: formatUsd(PRICES.suite + PRICES.score) },
    score: { wallet, components: { payment_capability: { points: 30, max: 30 } } },
  });
  expect(await settlements(chain, payer.address)).toHaveLength(2);
});

test("score_batch returns 25 records in the order of the wallets in any letter case", async () => {
  const client = await connectLocal({ service: between(service.url, (answer) => answer), payer });
  const wallets = [payer.address, ...Array.from({ length: 24 }, (_, n) => stranger(n))];
  const { text, structured } = await call(client, "score_batch", { wallets });
  const scores = structured.scores as { wallet: string; tier: string }[] | undefined;
  expect(
    scores?.map((one) => one.wallet),
    text,
  ).toEqual(wallets.map((one) => one.toLowerCase()));
  expect(scores?.at(-1)?.tier).toBe("unrated");
});

describe("a scored verdict", () => {
  const claim = () => ({
    category: "payload-hash",
    conditions: { payload_text: "as agreed", expected_sha256: "0".repeat(64) },
    parties: { payer: payer.address, payee: stranger(1) },
    scored: true,
  });

  test("It costs its price and carries both parties' tiers, which match the wallets' own records", async () => {
    const client = await connectLocal({ service: between(service.url, (answer) => answer), payer });
    const wallets = [payer.address, stranger(1)];
    const { scores } = (await call(client, "score_batch", { wallets })).structured as { scores: Party[] };
    const { text, structured } = await call(client, "arbiter_verify", claim());
    const [own, other] = scores.map(({ wallet, score, tier }) => ({ wallet, score, tier }));
    expect(structured, text).toMatchObject({
      status: "paid",
      price: { amount_usd: formatUsd(PRICES.scoredVerdict) },
      verdict: { verdict: "refund", parties: { payer: own, payee: other } },
    });
  });
});

test.each([
  [
    "raised",
    (text: string) => text.replace(/"score":\d+/, '"score":99'),
    /a record's facts give different values for score/,
  ],
  ["of another wallet", (text: string) => text.replaceAll(stranger(1), stranger(2)), /not for the requested wallets/],
  ["missing", () => "[]", /not for the requested wallets/],
  ["without facts", (text: string) => text.replace('"inputs":', '"outputs":'), /cannot be recomputed/],
])("A record that is %s is paid for and withheld", async (_name, change, message) => {
  const hostile = between(service.url, (answer) =>
    answer.headers.has("payment-response") ? { ...answer, text: change(answer.text) } : answer,
  );
  const answer = await call(await connectLocal({ service: hostile, payer }), "score_wallet", { wallet: stranger(1) });
  expect(answer).toMatchObject({ isError: true, structured: {}, text: expect.stringMatching(message) });
  expect(answer.text).toMatch(/^Paid 0\.10 USDC to 0x\w{40} \(transaction 0x\w{64}\)/);
});
