import { expect, test } from "vitest";
import { correctVerdict } from "../../api/arbiter/reach-verdict.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { buyVerdict, COMMIT, checkRun, recordParts, startArbiterScene } from "../support/arbiter/scene.ts";
import { expectFit, launchBrowser, openPage, sizes } from "../support/browser/browser.ts";
import { eventually } from "../support/eventually.ts";
import { forFile } from "../support/for-file.ts";
import { newPayer } from "../support/payments/signing.ts";

const PARTIES = {
  payer: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  payee: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
};

const pages: Record<string, string> = { arbiter: "/arbiter", "arbiter-policy": "/arbiter/policy", log: "/log" };

const [scene, browser] = await Promise.all([forFile(startArbiterScene()), forFile(launchBrowser())]);
const pool = await forFile(connect(scene.service.database.apiUrl));
const payer = await newPayer(scene.chain);
const buy = async (name: string, claim: Parameters<typeof buyVerdict>[2]) => {
  const { answer } = await buyVerdict(scene.service, payer, claim);
  pages[name] = new URL(String(answer.body.verdict_url)).pathname;
  return String(answer.body.id);
};
const conditionsOf = (verdict: string) =>
  scene.claims.find((one) => one.category === "http-delivery" && one.verdict === verdict)?.conditions ?? {};
// Names without a possible line break.
await buy("verdict-release", {
  category: "http-delivery",
  conditions: conditionsOf("release"),
  deal_ref: "x".repeat(120),
  parties: PARTIES,
});
await buy("verdict-escalate", {
  category: "http-delivery",
  conditions: conditionsOf("escalate"),
  deal_ref: "deal 17",
});
scene.runs.set("octo/long", [checkRun(1, { name: "n".repeat(120), conclusion: "c".repeat(40) }), checkRun(2)]);
await buy("verdict-checks", { category: "ci-status", conditions: { repo: "octo/long", commit_sha: COMMIT } });
const wrong = await buy("verdict-superseded", {
  category: "http-delivery",
  conditions: { ...conditionsOf("refund"), expect_contains: "y".repeat(300) },
});
await buy("verdict-refund", {
  category: "payload-hash",
  conditions: { payload_text: "x", expected_sha256: "0".repeat(64) },
});
const corrected = await correctVerdict(await recordParts(scene.service, pool), wrong, `It was ${"w".repeat(200)}.`);
if (!("verdict" in corrected)) throw new Error(`not corrected: ${corrected.refused}`);
pages["verdict-correction"] = `/arbiter/verdict/${corrected.verdict.id}`;
// Once everything bought is in the log, the pages no longer change during the test.
await eventually(
  async () => (await fetch(`${scene.service.url}${pages["verdict-correction"]}.tlog-proof`)).status,
  200,
);
pages["log-search"] = `/log?id=${wrong}`;
const { search } = (await (await fetch(`${scene.service.url}${pages["log-search"]}`)).json()) as {
  search: { found: readonly { entry_url: string }[] };
};
pages["log-entry"] = new URL(search.found[0]?.entry_url ?? "").pathname;

test.concurrent.for(sizes)(
  "The arbiter's pages fit a %s, are accessible in light and dark, and have no error and no dead link",
  (size) => expectFit(browser, pages, { size, baseURL: scene.service.url }),
);

test("A verdict's page shows the decision, its reasons, and a later correction", async () => {
  const { page } = await openPage(browser, { size: "desk", baseURL: scene.service.url });
  const visit = async (name: string) => {
    await page.goto(pages[name] ?? "");
    return [await page.locator("h1").textContent(), (await page.locator("main").textContent()) ?? ""] as const;
  };
  const [released, whole] = await visit("verdict-release");
  expect(released).toBe("Release");
  expect(whole).toMatch(/expect_sha256.*true.*match/s);
  expect(whole).toContain(PARTIES.payee);
  const [refunded, why] = await visit("verdict-refund");
  expect([refunded, why]).toEqual(["Refund", expect.stringMatching(/expected_sha256.*false.*mismatch/s)]);
  expect((await visit("verdict-escalate"))[1]).toMatch(/unknown.*undecided|unknown.*server error/s);
  expect((await visit("verdict-superseded"))[1]).toMatch(/Superseded by [0-9a-f]{32}/);
  await page
    .getByRole("link", { name: /^[0-9a-f]{32}$/ })
    .first()
    .click();
  await page.waitForURL(`**${pages["verdict-correction"]}`);
  expect(await page.locator("main").textContent()).toMatch(/Supersedes [0-9a-f]{32}.*It was w+/s);
  await page.context().close();
});
