import type { LocalAccount } from "viem";
import { afterAll, describe, expect, test } from "vitest";
import { ITEMS, type Item, MENU } from "../../../api/cafe/menu.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, challengeOf, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const SEPOLIA = NETWORKS["eip155:84532"];
const ACCEPTED = {
  network: SEPOLIA.id,
  asset: SEPOLIA.usdc.address,
  extra: { name: SEPOLIA.usdc.name, version: "2" },
};

const chain = await forFile(startTestChain({ network: "eip155:84532" }));
let service = await startService({ chain });
afterAll(() => service.stop());

/** The headers of a payment for an item. */
async function paymentFor(item: Item, payer: LocalAccount): Promise<Record<string, string>> {
  const signed = await signPayment(payer, { value: MENU[item].price }, SEPOLIA);
  return v2(signed, { accepted: ACCEPTED });
}

interface OrderInput {
  readonly body?: unknown;
  readonly query?: string;
}

const send = (
  item: Item,
  headers: Record<string, string>,
  { body = null, query = "" }: OrderInput = {},
): Promise<Answer> =>
  post(`${service.url}/order/${item}${query}`, headers, body === null ? null : JSON.stringify(body));

async function order(item: Item, payer?: LocalAccount, input?: OrderInput): Promise<Answer["body"]> {
  const buyer = payer ?? (await newPayer(chain));
  const answer = await send(item, await paymentFor(item, buyer), input);
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  return answer.body;
}

const openRounds = async (): Promise<readonly { nickname: string; left: number }[]> =>
  JSON.parse(await (await fetch(`${service.url}/cafe`)).text()).open_rounds;

/** Orders espressos until no round is open. */
async function drinkUp(): Promise<void> {
  while ((await openRounds()).length > 0) await order("espresso");
}

describe("menu of the café", () => {
  test.each(ITEMS)("%s costs its price in test USDC on Base Sepolia", async (item) => {
    const unpaid = await send(item, {});
    expect(unpaid.status).toBe(402);
    const [terms] = challengeOf(unpaid).accepts;
    expect(terms).toMatchObject({ network: SEPOLIA.id, amount: String(MENU[item].price) });
    expect(terms?.asset.toLowerCase()).toBe(SEPOLIA.usdc.address);
  });

  test.each([
    ["espresso", (body: Answer["body"]) => expect(String(body.ascii_art).split("\n").length).toBeGreaterThan(3)],
    ["flat-white", (body: Answer["body"]) => expect(body.fortune).toMatch(/\w{3}.*\.$/)],
    ["the-good-stuff", (body: Answer["body"]) => expect(body.title).toMatch(/^\w+ of .+/)],
    ["buy-a-round", (body: Answer["body"]) => expect(body.your_round).toMatchObject({ receipts: 10 })],
  ] as const)("%s comes with its extra on the receipt", async (item, check) => {
    const payer = await newPayer(chain);
    const body = await order(item, payer);
    check(body);
    expect(body).toMatchObject({ item, payer: payer.address.toLowerCase(), network: SEPOLIA.id });
    const receipt = await chain.client.getTransactionReceipt({ hash: body.transaction as `0x${string}` });
    expect(receipt.status).toBe("success");
  });

  test("A payer's title is the same all day, but fortunes vary", async () => {
    const payer = await newPayer(chain);
    const [one, other] = [await order("the-good-stuff", payer), await order("the-good-stuff", payer)];
    expect(one.title).toBe(other.title);
    const fortunes = new Set<unknown>();
    for (let n = 0; n < 12 && fortunes.size < 2; n++) fortunes.add((await order("flat-white", payer)).fortune);
    expect(fortunes.size).toBe(2);
  });
});

describe("rounds", () => {
  test("A round covers the next ten receipts of other payers for any item, and none of the buyer's", async () => {
    await drinkUp();
    const host = await newPayer(chain);
    await order("buy-a-round", host, { body: { nickname: "Ada Lovelace" } });
    expect((await order("espresso", host)).round).toBeUndefined();
    for (let number = 1; number <= 10; number++) {
      const { round } = await order(number % 2 === 0 ? "espresso" : "flat-white");
      expect(round).toEqual({ by: "Ada Lovelace", number, of: 10 });
    }
    expect((await order("espresso")).round).toBeUndefined();
  });

  test("A round waits behind earlier ones, and the queue survives a restart", async () => {
    await drinkUp();
    await order("buy-a-round", undefined, { query: "?nickname=First" });
    const second = await newPayer(chain);
    // The second round is bought while the first is open, so the first covers it.
    expect((await order("buy-a-round", second)).round).toEqual({ by: "First", number: 1, of: 10 });
    await service.stop();
    service = await startService({ chain, database: service.database });
    const short = `${second.address.toLowerCase().slice(0, 6)}…${second.address.toLowerCase().slice(-4)}`;
    expect(await openRounds()).toEqual([
      { nickname: "First", left: 9 },
      { nickname: short, left: 10 },
    ]);
    for (let number = 2; number <= 10; number++)
      expect((await order("espresso")).round).toEqual({ by: "First", number, of: 10 });
    expect((await order("espresso")).round).toEqual({ by: short, number: 1, of: 10 });
  });

  test("Three rounds cover thirty receipts exactly once under fifty concurrent orders in two processes", async () => {
    await drinkUp();
    for (const nickname of ["one", "two", "three"]) await order("buy-a-round", undefined, { body: { nickname } });
    // The first round covered the purchases of the later two.
    const taken = (await openRounds()).map(({ left }) => 10 - left).reduce((sum, n) => sum + n, 0);
    const other = await startService({ chain, database: service.database });
    // Sequential, because the chain's faucet is a single account.
    const buyers: LocalAccount[] = [];
    while (buyers.length < 50) buyers.push(await newPayer(chain));
    const headers = await Promise.all(buyers.map((buyer) => paymentFor("espresso", buyer)));
    const answers = await Promise.all(
      headers.map((header, n) => post(`${n % 2 === 0 ? service.url : other.url}/order/espresso`, header)),
    );
    await other.stop();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const given = answers.flatMap(({ body }) => (body.round ? [JSON.stringify(body.round)] : []));
    expect(given).toHaveLength(30 - taken);
    expect(new Set(given).size).toBe(given.length);
    expect(await openRounds()).toEqual([]);
  });

  test("A replay returns the same receipt and uses up no round", async () => {
    await drinkUp();
    await order("buy-a-round", undefined, { body: { nickname: "Grace" } });
    const header = await paymentFor("espresso", await newPayer(chain));
    const [first, again] = [await send("espresso", header), await send("espresso", header)];
    expect(again.text).toBe(first.text);
    expect(again.headers.get("x-idempotent-replay")).toBe("true");
    expect(await openRounds()).toEqual([{ nickname: "Grace", left: 9 }]);
  });
});

describe("nickname of a round's buyer", () => {
  test("A stranger's nickname is shown as plain text", async () => {
    await drinkUp();
    const nickname = '<img src=x onerror="1">&';
    const body = await order("buy-a-round", undefined, { body: { nickname } });
    expect(body.your_round).toEqual({ nickname, receipts: 10 });
    const page = await (await fetch(`${service.url}/cafe`, { headers: { accept: "text/html" } })).text();
    expect(page).toContain("&lt;img src=x onerror=&quot;1&quot;&gt;&amp;");
    expect(page).not.toContain("<img");
  });

  test.each([
    ["33 characters", "x".repeat(33)],
    ["no characters", ""],
    ["a line break", "a\nb"],
    ["a bidirectional override", "a\u202eb"],
    ["spaces around it", " a "],
    ["a number", 7],
  ])("A nickname with %s is rejected without a charge", async (_, nickname) => {
    const payer = await newPayer(chain);
    const answer = await send("buy-a-round", await paymentFor("buy-a-round", payer), { body: { nickname } });
    expectProblem(
      answer,
      typeof nickname === "number" ? 400 : 422,
      typeof nickname === "number" ? "malformed_request" : "unacceptable",
    );
    expect(answer.body.errors).toMatchObject([{ path: "nickname" }]);
    await nothingCharged(chain, payer);
  });

  test("Different nicknames in query and body are a 400 without a charge", async () => {
    const payer = await newPayer(chain);
    const headers = await paymentFor("buy-a-round", payer);
    const answer = await send("buy-a-round", headers, { body: { nickname: "a" }, query: "?nickname=b" });
    expectProblem(answer, 400, "malformed_request");
    await nothingCharged(chain, payer);
  });
});
