import { expect, test } from "vitest";
import { expectFit, expectFitting, launchBrowser, openPage, sizes } from "../support/browser/browser.ts";
import { startSite } from "../support/browser/site.ts";
import { forFile } from "../support/for-file.ts";

const [site, browser] = await Promise.all([forFile(startSite()), forFile(launchBrowser())]);
const baseURL = site.baseUrl;
const { "not-found": absent = "", ...pages } = site.pages;

test.concurrent.for(sizes)(
  "Every page fits a %s, is accessible, logs no error, and has no dead link",
  { timeout: 180_000 },
  async (size) => {
    await expectFit(browser, pages, { size, baseURL });
    const { page } = await openPage(browser, { size, baseURL });
    await page.goto(absent);
    await expectFitting(page, "not-found", size);
    await page.context().close();
  },
);

test("The badge preview loads, and one button copies the README snippet", async () => {
  const { page, troubles } = await openPage(browser, { size: "phone", baseURL });
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: baseURL });
  await page.goto(site.certificate);
  await expect.poll(() => page.evaluate("document.querySelector('.badge img').naturalWidth")).toBeGreaterThan(100);
  const button = page.getByRole("button", { name: /^Copy: Markdown/ });
  await button.click();
  await expect.poll(() => button.textContent()).toBe("Copied");
  const copied = await page.evaluate("navigator.clipboard.readText()");
  expect(copied).toBe(await page.locator("#badge-markdown").textContent());
  expect(copied).toContain(`](${baseURL}${site.certificate})`);
  expect(troubles).toEqual([]);
  await page.context().close();
});

test("A finding links to its exchange, which shows hostile content as text and is accessible when open", async () => {
  const { page, troubles } = await openPage(browser, { size: "phone", baseURL });
  await page.goto(String(site.pages["seller-pass"]));
  const answer = page.locator("#exchange-6-answer");
  expect(await answer.isVisible()).toBe(false);
  await page.getByRole("link", { name: "Exchange 6" }).first().click();
  await expect.poll(() => answer.isVisible()).toBe(true);
  expect(await answer.textContent()).toContain("<img src=x onerror=alert(1)> \\u{202e}long-words");
  await expectFitting(page, "seller-exchange", "phone");
  expect(troubles).toEqual([]);
  await page.context().close();
});

test("The home page finds a wallet without a script, by keyboard alone", async () => {
  const { page } = await openPage(browser, { size: "phone", baseURL });
  await page.goto("/");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect(new URL(page.url()).hash).toBe("#main");
  await page.getByLabel("Wallet address").fill("0x70997970c51812dc3a010c7d01b50e0d17dc79c8");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/verify?wallet=0x70997970c51812dc3a010c7d01b50e0d17dc79c8");
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toContain("erified");
  await page.context().close();
});
