import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  expectFit,
  expectPages,
  launchBrowser,
  linksOf,
  openPage,
  type Size,
  sizes,
} from "../support/browser/browser.ts";
import { startTestChain, type TestChain } from "../support/chain/chain.ts";
import { openOperator } from "../support/escrow/auth-capture.ts";
import { deployEscrow, hold, newMerchant, statusOf } from "../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../support/escrow/delivery.ts";
import { eventually } from "../support/eventually.ts";
import { startService, type TestService } from "../support/service/service.ts";

const PAGES = {
  escrow: "/escrow",
  "escrow-demo": "/escrow/demo",
  "escrow-released": "",
  "escrow-refunded": "",
  "escrow-pending": "",
};

let chain: TestChain;
let service: TestService;
let browser: Browser;

beforeAll(async () => {
  [chain, browser] = await Promise.all([startTestChain(), launchBrowser()]);
  const [escrow, earlier] = [await deployEscrow(chain), await deployEscrow(chain)];
  const addresses = [escrow.address, (await openOperator(chain)).address, earlier.address];
  service = await startService({ chain, config: { escrowAddresses: addresses } });
  const merchant = newMerchant();
  const evaluated = async (delivered: typeof GOOD | typeof EMPTY) => {
    const held = await hold({ chain, escrow }, merchant.address);
    const { body } = await deliver(service, merchant, { ...held, ...delivered });
    return { held, path: new URL(String(body.record_url)).pathname };
  };
  const ended = [await evaluated(GOOD), await evaluated(EMPTY)] as const;
  await eventually(() => statusOf({ chain, escrow }, ended[0].held), "released");
  await eventually(() => statusOf({ chain, escrow }, ended[1].held), "refunded");
  for (const { path } of ended) await eventually(async () => (await shown(path)).includes(PENDING), false);
  // No block is mined from here on.
  const open = await hold({ chain, escrow }, merchant.address);
  await chain.client.setAutomine(false);
  const { body } = await deliver(service, merchant, { ...open, ...GOOD });
  PAGES["escrow-released"] = ended[0].path;
  PAGES["escrow-refunded"] = ended[1].path;
  PAGES["escrow-pending"] = new URL(String(body.record_url)).pathname;
}, 120_000);

afterAll(async () => {
  await chain?.client.setAutomine(true);
  await chain?.mine();
  await browser?.close();
  await service?.stop();
  await chain?.stop();
});

const PENDING = "decided, not mined yet";
const shown = async (path: string) =>
  (await fetch(`${service.url}${path}`, { headers: { accept: "text/html" } })).text();

const open = (size: Size) => openPage(browser, { size, baseURL: service.url });

test.concurrent.for(sizes)("The escrow's pages fit a %s, are accessible in light and dark, and log no error", (size) =>
  expectFit(browser, PAGES, { size, baseURL: service.url }),
);

test("An evaluation's page shows the decision, its reason, and its status", async () => {
  const { page } = await open("desk");
  const visit = async (path: string) => {
    await page.goto(path);
    return [await page.locator("h1").textContent(), await page.locator("main").textContent()] as const;
  };
  const [released, whole] = await visit(PAGES["escrow-released"]);
  expect(released).toMatch(/Released to the merchant/);
  expect(whole).toMatch(/1\.00 USDC.*0\.99.*0\.01/s);
  const [refunded, why] = await visit(PAGES["escrow-refunded"]);
  expect(refunded).toMatch(/Refunded to the buyer/);
  expect(why).toContain("The body is empty");
  const [pending] = await visit(PAGES["escrow-pending"]);
  expect(pending).toMatch(/To be released to the merchant/);
  await page.context().close();
});

test("Every link on the escrow's pages leads to a page or to the block explorer", async () => {
  const { own, foreign } = await linksOf(browser, PAGES, { baseURL: service.url });
  for (const url of foreign)
    expect(url).toMatch(/^https:\/\/basescan\.org\/(tx\/0x[0-9a-f]{64}|address\/0x[0-9a-f]{40})$/);
  expect(own.size).toBeGreaterThan(4);
  await expectPages(service.url, own);
});
