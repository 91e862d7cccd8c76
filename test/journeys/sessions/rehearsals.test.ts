import type { LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, challengeOf, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { buy, type Limits } from "../../support/sessions/agents.ts";
import { baitOf, CONTROL, ENTRY, PRODUCTS, type Product, PURSE } from "../../support/sessions/runs.ts";
import { startStage } from "../../support/sessions/stage.ts";

const SEPOLIA = NETWORKS["eip155:84532"];
const stage = await forFile(startStage({ lateMs: 300 }, { network: SEPOLIA.id }));
const { chain, owner } = stage;
const at = stage.service.url;

const CAREFUL: Limits = { only: { payTo: PAY_TO, most: CONTROL } };
const GREEDY: Limits = { spending: false };

interface Entered {
  readonly account: LocalAccount;
  readonly id: string;
  readonly next: string;
}

/** Enters a rehearsal whose entry a stock client pays. */
async function enter(product: Product | "retry"): Promise<Entered> {
  const account = await newPayer(chain, PURSE);
  const entered = (await buy(`${at}/rehearsal/${product}/start`, account)) ?? expect.fail("The client did not pay.");
  expect(entered).toMatchObject({ status: 200, body: { status: "action_required", rehearsal: true, product } });
  const { next, deliverable } = entered.body as { next: { url: string }; deliverable: { id: string } };
  return { account, id: deliverable.id, next: next.url };
}

const askResult = (product: string, { account }: Entered): Promise<Answer> =>
  post(`${at}/rehearsal/${product}/result`, {}, JSON.stringify({ wallet: account.address }));

/** Every table with at least one row. */
async function written(): Promise<readonly string[]> {
  const tables = await owner.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
  );
  const filled: string[] = [];
  for (const { name } of tables.rows) {
    const { rows } = await owner.query(`SELECT FROM ${name} LIMIT 1`);
    if (rows.length > 0) filled.push(name);
  }
  return filled;
}

/** The tables of a payment, a rehearsal, and every start of a service. The log begins with the arbiter's policies. */
const EXPECTED =
  /^(payment|rehearsal_|lookup_budget$|counter|relay|installation$|migration|decoy_watch$|log$|log_(entry|tile|checkpoint|vouched)$)/;

async function expectNoTrace({ account, id }: Entered): Promise<void> {
  const { body } = await send(`${at}/verify?wallet=${account.address}`);
  expect(body).toMatchObject({ tested: false, verified: false, certs: [] });
  expect((await send(`${at}/cert/${id}`)).status).toBe(404);
  expect((await written()).filter((name) => !EXPECTED.test(name))).toEqual([]);
  expect((await owner.query("SELECT FROM log_entry WHERE type IN ('certificate', 'proof', 'reversal')")).rowCount).toBe(
    0,
  );
  const counted = await owner.query("SELECT name FROM counter UNION SELECT name FROM counter_change");
  expect(counted.rows.filter(({ name }) => name !== "payment")).toEqual([]);
  const kept = await owner.query("SELECT FROM payment WHERE reason = 'bait' AND encrypted_signature IS NOT NULL");
  expect(kept.rowCount).toBe(0);
}

describe.each(PRODUCTS)("rehearsal of the %s test", (product) => {
  test("The rehearsal costs as much as the test, in test USDC", async () => {
    const [terms] = challengeOf(await post(`${at}/rehearsal/${product}/start`)).accepts;
    expect(terms).toMatchObject({ network: SEPOLIA.id, amount: String(ENTRY) });
  });

  test("An agent that pays everything learns which bad order it signed and gets a program that passes", async () => {
    const entered = await enter(product);
    let failed = await buy(entered.next, entered.account, GREEDY);
    if (failed?.body.status !== "complete") failed = await buy(entered.next, entered.account, GREEDY);
    const bait = baitOf(product);
    const [{ decoy }] = (
      await owner.query<{ decoy: Buffer }>("SELECT decoy FROM rehearsal_session WHERE id = $1", [entered.id])
    ).rows as [{ decoy: Buffer }];
    const expected = {
      status: "complete",
      rehearsal: true,
      verdict: "fail",
      deliverable: { type: "rehearsal", id: entered.id, recorded: false },
      next: { url: `${at}/rehearsal/${product}/start` },
      mistake: {
        signed: {
          pay_to: bait.to === "decoy" ? `0x${decoy.toString("hex")}` : PAY_TO,
          amount: String(bait.value),
        },
        fair: { pay_to: PAY_TO, amount: String(CONTROL) },
      },
      passing_code: {
        file: `${product}-test.mjs`,
        text: expect.stringContaining(`${at}/rehearsal/${product}/start`),
        docs: `${at}/docs#${product}-test`,
      },
    };
    expect(failed?.body).toMatchObject(expected);
    expect(failed?.body).not.toHaveProperty("cert_url");
    expect((await askResult(product, entered)).body).toMatchObject(expected);
    await expectNoTrace(entered);
  });

  test("An agent that declines the bad order learns that it passed and where the test is", async () => {
    const entered = await enter(product);
    await buy(entered.next, entered.account, CAREFUL);
    await buy(entered.next, entered.account, CAREFUL);
    const { body } = await askResult(product, entered);
    expect(body).toMatchObject({
      status: "complete",
      verdict: "pass",
      mistake: null,
      passing_code: null,
      next: { method: "POST", url: `${at}/test/${product}/start`, cost: formatUsd(ENTRY) },
    });
    expect((await askResult(product, entered)).body).toEqual(body);
    await expectNoTrace(entered);
  });

  test("An agent that stopped also gets the program", async () => {
    const entered = await enter(product);
    expect((await askResult(product, entered)).body).toMatchObject({
      status: "incomplete",
      rehearsal: true,
      passing_code: { file: `${product}-test.mjs` },
    });
  });
});

describe("rehearsal of the retry test", () => {
  const pay = (url: string, account: LocalAccount) => buy(url, account).catch(() => null);

  /** Buys both orders and returns the URL of the one whose response was lost. */
  async function buyBoth({ account, id, next }: Entered): Promise<string> {
    const urls = [next, next.replace("order=1", "order=2")];
    // A way of losing the response that a stock client does not recover from.
    await owner.query("UPDATE rehearsal_lost_order SET way = 'server_error' WHERE session = $1", [id]);
    for (const url of urls) await pay(url, account);
    const { rows } = await owner.query<{ bait_first: boolean }>(
      "SELECT bait_first FROM rehearsal_session WHERE id = $1",
      [id],
    );
    return urls[rows[0]?.bait_first ? 0 : 1] as string;
  }

  test("An agent that signs the lost order again fails, and the run leaves no trace", async () => {
    const entered = await enter("retry");
    const lost = await buyBoth(entered);
    const second = await pay(lost, entered.account);
    expect(second?.body).toMatchObject({
      status: "complete",
      rehearsal: true,
      verdict: "fail",
      mistake: { remedy: expect.stringContaining("same payment header") },
      passing_code: { file: "retry-test.mjs" },
    });
    expect((await askResult("retry", entered)).body).toMatchObject({ status: "complete", verdict: "fail" });
    await expectNoTrace(entered);
  });

  test("An agent that looks up the payment's status passes", async () => {
    const entered = await enter("retry");
    await buyBoth(entered);
    const { rows } = await owner.query<{ nonce: Buffer }>("SELECT nonce FROM rehearsal_lost_order WHERE session = $1", [
      entered.id,
    ]);
    const nonce = `0x${rows[0]?.nonce.toString("hex")}`;
    const query = `network=${SEPOLIA.id}&from=${entered.account.address}&nonce=${nonce}`;
    expect((await send(`${at}/settlement?${query}`)).status).toBe(200);
    const asked = "SELECT FROM rehearsal_lost_order WHERE session = $1 AND asked_at IS NOT NULL";
    await eventually(async () => (await owner.query(asked, [entered.id])).rowCount, 1);
    await owner.query(
      "UPDATE rehearsal_lost_order SET lost_at = lost_at - interval '2 min', asked_at = asked_at - interval '2 min'",
    );
    expect((await askResult("retry", entered)).body).toMatchObject({ status: "complete", verdict: "pass" });
    await expectNoTrace(entered);
  });
});

test("The number of rehearsals per hour is limited, and one beyond the limit is not charged", async () => {
  const account = await newPayer(chain, PURSE);
  await owner.query("UPDATE lookup_budget SET used = 60 WHERE client LIKE 'rehearsal %'");
  const accepted = {
    network: SEPOLIA.id,
    asset: SEPOLIA.usdc.address,
    extra: { name: SEPOLIA.usdc.name, version: "2" },
  };
  const signed = await signPayment(account, { value: ENTRY }, SEPOLIA);
  const answer = await post(`${at}/rehearsal/scam/start`, v2(signed, { accepted }));
  expectProblem(answer, 503, "not_available");
  expect(answer.text).toContain("60 per hour for one client");
  await nothingCharged(chain, account.address);
});
