import { describe, expect, test } from "vitest";
import type { SingleProduct } from "../../../../api/certificates/products.ts";
import { boardSeeder } from "../../../support/board.ts";
import { forFile } from "../../../support/for-file.ts";
import { cancel, settlements } from "../../../support/payments/on-chain.ts";
import { PRICES } from "../../../support/payments/prices.ts";
import { post, send, v2 } from "../../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../../support/payments/signing.ts";
import { binary } from "../../../support/service/database.ts";
import { buy, passWindow, pay, priceOf, startLossy } from "../../../support/sessions/lost-orders.ts";
import {
  askResult,
  attempt,
  CONTROL,
  ENTRY,
  expectIncomplete,
  expectStored,
  expectVerdict,
  PURSE,
  payControl,
  type Run,
  serve,
  serveBoth,
  sign,
  startPassing,
  startRun,
} from "../../../support/sessions/runs.ts";
import { startStage } from "../../../support/sessions/stage.ts";

const DAY_MS = 86_400_000;
const soon = { timeout: 20_000, interval: 200 };

let clock: Date | null = null;
const stage = await forFile(startStage({ now: () => clock ?? new Date() }, { slotsInAnEpoch: 3 }));
// anvil knows the state of loaded blocks only at its head, so the finalized block must be one that it mined.
await stage.chain.mine(10);

const ground = () => ({ ...stage, at: stage.service.url });
const verify = async (wallet: string) => (await send(`${stage.service.url}/verify?wallet=${wallet}`)).body;
const recordOf = async ({ id }: Run) => (await send(`${stage.service.url}/cert/${id}`)).body;

test("A wallet's record has its result in each of the four tests", async () => {
  const account = await newPayer(stage.chain, PURSE);
  const single = async (product: SingleProduct) => {
    const signed = await signPayment(account, { value: PRICES[product] });
    const { status } = await post(`${stage.service.url}/test/${product}`, v2(signed));
    expect(status).toBe(200);
  };
  await single("basic");
  await single("suite");
  const scam = await startPassing(ground(), "scam", { account });
  expectVerdict(await askResult(scam), scam, "pass");
  expect(await verify(account.address)).toMatchObject({
    verified: true,
    capabilities: { recipient_awareness: { tested: false, result: null } },
  });
  const recipient = await startRun(ground(), "recipient", { account });
  await serveBoth(recipient);
  expectVerdict(await attempt(recipient, v2(await sign(recipient, "bait"))), recipient, "fail");
  const record = await verify(account.address);
  const fresh = { tested: true, fresh: true, expired: false };
  expect(record).toMatchObject({
    tested: true,
    verified: false,
    capabilities: {
      can_pay: { ...fresh, result: "pass" },
      full_suite: { ...fresh, result: "pass" },
      scam_resistance: { ...fresh, result: "pass", cert_url: `${stage.service.url}/cert/${scam.id}` },
      recipient_awareness: { ...fresh, result: "fail", cert_url: `${stage.service.url}/cert/${recipient.id}` },
    },
  });
  const certs = record.certs as { product: string; result: string }[];
  expect(certs.map(({ product, result }) => `${product} ${result}`)).toEqual([
    "recipient fail",
    "scam pass",
    "suite pass",
    "basic pass",
  ]);
  clock = new Date(Date.now() + 30 * DAY_MS);
  expect(await verify(account.address)).toMatchObject({
    tested: true,
    verified: false,
    capabilities: {
      scam_resistance: { tested: true, result: "pass", fresh: false, expired: true },
      recipient_awareness: { tested: true, result: "fail", fresh: false, expired: true },
    },
  });
  clock = null;
});

describe("A control whose settlement a reorganization permanently removed", () => {
  const loseLastBlocks = (count: number) =>
    stage.chain.client.request({ method: "anvil_reorg", params: [count, []] } as never);
  const nonceOf = async (run: Run) =>
    (await stage.owner.query("SELECT control_nonce FROM test_session WHERE id = $1", [run.id])).rows[0]?.control_nonce;
  const marks = async (nonce: Buffer) =>
    (await stage.owner.query("SELECT kind FROM settlement_mark WHERE nonce = $1", [nonce])).rows;

  async function reverse({ account }: Run, signed: Signed): Promise<void> {
    await loseLastBlocks(1);
    await cancel(stage.chain, account, signed);
    await stage.chain.mine(8);
    const nonce = binary(signed.authorization.nonce);
    await expect.poll(() => marks(nonce), soon).toEqual([{ kind: "reversed" }]);
    expect((await settlements(stage.chain, account.address)).map(({ value }) => value)).toEqual([ENTRY]);
  }

  test("The PASS is marked as reversed and no longer verifies the wallet", async () => {
    const run = await startRun(ground(), "scam");
    await serveBoth(run);
    const signed = await payControl(run);
    const answer = await askResult(run);
    expectVerdict(answer, run, "pass");
    expect(await verify(run.account.address)).toMatchObject({ verified: true });
    await reverse(run, signed);
    expect(await recordOf(run)).toMatchObject({
      verdict: "pass",
      fresh: false,
      reversed: true,
      reversed_at: expect.stringMatching(/Z$/),
      settlement: { amount: String(ENTRY) },
    });
    expect(await verify(run.account.address)).toMatchObject({
      tested: true,
      verified: false,
      certs: [{ id: run.id, fresh: false, reversed: true }],
      capabilities: { scam_resistance: { tested: false } },
    });
    expect((await askResult(run)).text).toBe(answer.text);
  });

  test("A PASS of a retry test is also marked as reversed, but a FAIL is not", async () => {
    const [safe, unsafe] = [
      await startLossy(ground(), { way: "server_error" }),
      await startLossy(ground(), { way: "server_error" }),
    ];
    const lost = await buy(safe, safe.lost);
    await pay(safe, safe.lost, lost.signed);
    await buy(unsafe, unsafe.lost);
    const runs = [
      { run: safe, plain: await buy(safe, safe.plain), verdict: "pass" },
      { run: unsafe, plain: await buy(unsafe, unsafe.plain), verdict: "fail" },
    ];
    await buy(unsafe, unsafe.lost);
    await passWindow(stage, safe);
    for (const { run, verdict } of runs) expect((await askResult(run)).body).toMatchObject({ verdict });
    await loseLastBlocks(runs.length);
    for (const { run, plain } of runs) await cancel(stage.chain, run.account, plain.signed);
    await stage.chain.mine(8);
    for (const { run, plain, verdict } of runs) {
      await expect.poll(() => marks(binary(plain.signed.authorization.nonce)), soon).toEqual([{ kind: "reversed" }]);
      const paid = await settlements(stage.chain, run.account.address);
      expect(paid.map(({ value }) => value)).toEqual([ENTRY, priceOf(run.lost)]);
      const reversed = verdict === "pass";
      const record = (await send(`${stage.service.url}/cert/${run.id}`)).body;
      expect(record).toMatchObject({ verdict, reversed, fresh: !reversed });
      const { capabilities } = await verify(run.account.address);
      expect(capabilities).toMatchObject({ retry_safety: { tested: !reversed } });
      const logged = ["log_pending", "log_entry"].map(
        (table) => `SELECT FROM ${table} WHERE ref = $1 AND type = 'reversal'`,
      );
      expect((await stage.owner.query(logged.join(" UNION ALL "), [run.id])).rowCount).toBe(reversed ? 1 : 0);
    }
  });

  test("In an open session, the control is offered and charged again", async () => {
    const run = await startRun(ground(), "recipient");
    await serveBoth(run);
    const signed = await payControl(run);
    await reverse(run, signed);
    expectIncomplete(await askResult(run));
    expect([await serve(run), await serve(run)].sort()).toEqual(["bait", "control"]);
    await payControl(run);
    expect(await nonceOf(run)).not.toEqual(binary(signed.authorization.nonce));
    expectVerdict(await askResult(run), run, "pass");
    await expectStored(stage, run, "pass");
    expect(await recordOf(run)).toMatchObject({ fresh: true, reversed: false });
    const paid = await settlements(stage.chain, run.account.address);
    expect(paid.map(({ value }) => value)).toEqual([ENTRY, CONTROL]);
  });
});

const seeder = await forFile(boardSeeder(stage.service.database));
describe("A PASS of a wallet with a current FAIL", () => {
  const GREEN = "#16704c";
  const shown = async (id: string) => {
    const read = (path: string, accept = "application/json") =>
      send(`${stage.service.url}${path}`, { headers: { accept } });
    const [badge, page, record, picture] = await Promise.all([
      read(`/badge/${id}.svg`),
      read(`/cert/${id}`, "text/html"),
      read(`/cert/${id}`),
      read(`/cert/${id}/og.png`),
    ]);
    return { badge: badge.text, page: page.text, record: record.body, picture: picture.text };
  };
  const ago = (days: number) => new Date(Date.now() - days * DAY_MS);
  const expectGreen = ({ badge, page, record }: Awaited<ReturnType<typeof shown>>) => {
    expect(badge).toContain(`fill="${GREEN}"`);
    expect(badge).toContain("valid until");
    expect(page).toContain('class="deed pass"');
    expect(record).toMatchObject({ verdict: "pass", counts: true, wallet_current_fails: [] });
  };

  test("The PASS is shown with its wallet as not verified until the FAIL expires", async () => {
    const [pass = "", fail = ""] = await seeder.add(
      { wallet: 200, product: "basic", issuedAt: ago(1) },
      { wallet: 200, product: "scam", result: "fail", issuedAt: ago(28.5) },
    );
    const { badge, page, record, picture } = await shown(pass);
    expect(badge).not.toContain(GREEN);
    expect(badge).toMatch(/not verified · FAIL in scam 20\d\d-\d\d-\d\d/);
    expect(page).not.toContain('class="deed pass"');
    expect(page).toMatch(
      /<h1>Wallet not verified<\/h1>.*the wallet is not verified because it failed the scam resistance test/s,
    );
    expect(page).not.toContain('"@type":"Certification"');
    expect(record).toMatchObject({ verdict: "pass", conformance: true, fresh: true, counts: true });
    expect(record.wallet_current_fails).toEqual([
      expect.objectContaining({ id: fail, product: "scam", cert_url: `${stage.service.url}/cert/${fail}` }),
    ]);
    clock = new Date(Date.now() + 2 * DAY_MS);
    const after = await shown(pass);
    clock = null;
    expectGreen(after);
    expect(after.picture).not.toBe(picture);
    expect(await shown(pass)).toMatchObject({ badge });
  });

  test("The page names the FAIL that expires last and the number of others", async () => {
    const [pass = ""] = await seeder.add(
      { wallet: 202, product: "basic", issuedAt: ago(2) },
      { wallet: 202, product: "scam", result: "fail", issuedAt: ago(9) },
      { wallet: 202, product: "recipient", result: "fail", issuedAt: ago(4) },
      { wallet: 202, product: "scam", result: "fail", issuedAt: ago(40) },
    );
    const { page, record } = await shown(pass);
    expect(page).toMatch(/failed the recipient awareness test on .*, and 1 more FAIL counts against it\./);
    expect((record.wallet_current_fails as { product: string }[]).map(({ product }) => product)).toEqual([
      "recipient",
      "scam",
    ]);
  });

  test("A basic test bought after the FAIL does not make the badge green", async () => {
    const run = await startRun(ground(), "scam");
    await serveBoth(run);
    expectVerdict(await attempt(run, v2(await sign(run, "bait"))), run, "fail");
    const bought = await post(`${stage.service.url}/test/basic`, v2(await signPayment(run.account)));
    expect(bought.body).toMatchObject({ verdict: "pass" });
    expect((await shown(String(bought.body.id))).badge).toContain("not verified · FAIL in scam");
  });
});
