import { expect, test } from "vitest";
import { expectFit, launchBrowser, openPage, sizes } from "../support/browser/browser.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { openOperator } from "../support/escrow/auth-capture.ts";
import { deployEscrow, hold, newMerchant, statusOf } from "../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../support/escrow/delivery.ts";
import { eventually } from "../support/eventually.ts";
import { forFile } from "../support/for-file.ts";
import { startService } from "../support/service/service.ts";

const [chain, browser] = await Promise.all([forFile(startTestChain()), forFile(launchBrowser())]);
const [escrow, earlier] = [await deployEscrow(chain), await deployEscrow(chain)];
const escrowAddresses = [escrow.address, (await openOperator(chain)).address, earlier.address];
const service = await forFile(startService({ chain, config: { escrowAddresses } }));
const merchant = newMerchant();

/** Holds and evaluates a delivery. Returns the path of its page once the chain has reached this state. */
async function evaluated(delivered: typeof GOOD | typeof EMPTY, state: "released" | "refunded"): Promise<string> {
  const held = await hold({ chain, escrow }, merchant.address);
  const { body } = await deliver(service, merchant, { ...held, ...delivered });
  const { href, pathname } = new URL(String(body.record_url));
  await eventually(() => statusOf({ chain, escrow }, held), state);
  const shown = async () => (await fetch(href, { headers: { accept: "text/html" } })).text();
  await eventually(async () => (await shown()).includes("decided, not mined yet"), false);
  return pathname;
}

const [released, refunded] = [await evaluated(GOOD, "released"), await evaluated(EMPTY, "refunded")];
// No block is mined from here on.
const open = await hold({ chain, escrow }, merchant.address);
await chain.client.setAutomine(false);
await forFile({ stop: () => chain.client.setAutomine(true).then(() => chain.mine()) });
const { body } = await deliver(service, merchant, { ...open, ...GOOD });
const PAGES = {
  ...{ escrow: "/escrow", "escrow-demo": "/escrow/demo", "escrow-released": released, "escrow-refunded": refunded },
  "escrow-pending": new URL(String(body.record_url)).pathname,
};

test.concurrent.for(sizes)(
  "The escrow's pages fit a %s, are accessible in light and dark, and have no error and no dead link",
  (size) => expectFit(browser, PAGES, { size, baseURL: service.url }),
);

test("An evaluation's page shows the decision, its reason, and its status", async () => {
  const { page } = await openPage(browser, { size: "desk", baseURL: service.url });
  const visit = async (path: string) => {
    await page.goto(path);
    return [await page.locator("h1").textContent(), await page.locator("main").textContent()] as const;
  };
  const [title, whole] = await visit(PAGES["escrow-released"]);
  expect(title).toMatch(/Released to the merchant/);
  expect(whole).toMatch(/1\.00 USDC.*0\.99.*0\.01/s);
  const [refund, why] = await visit(PAGES["escrow-refunded"]);
  expect(refund).toMatch(/Refunded to the buyer/);
  expect(why).toContain("The body is empty");
  const [pending] = await visit(PAGES["escrow-pending"]);
  expect(pending).toMatch(/To be released to the merchant/);
  await page.context().close();
});
