import { describe, expect, test } from "vitest";
import { boardSeeder } from "../../../support/board.ts";
import { forFile } from "../../../support/for-file.ts";
import { post, send, v2 } from "../../../support/payments/requests.ts";
import { signPayment } from "../../../support/payments/signing.ts";
import { attempt, expectVerdict, serveBoth, sign, startRun } from "../../../support/sessions/runs.ts";
import { startStage } from "../../../support/sessions/stage.ts";

const DAY_MS = 86_400_000;

let clock: Date | null = null;
const stage = await forFile(startStage({ now: () => clock ?? new Date() }));
const seeder = await forFile(boardSeeder(stage.service.database));
const ground = () => ({ ...stage, at: stage.service.url });

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
