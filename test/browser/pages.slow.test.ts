import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  expectPages,
  findings,
  inLine,
  launchBrowser,
  linksOf,
  picture,
  widerThanScreen,
} from "../support/browser/browser.ts";
import { startSite } from "../support/browser/site.ts";
import { forFile } from "../support/for-file.ts";

const SIZES = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 800 } } as const;
const SCHEMES = ["light", "dark"] as const;
/** Accessibility problems depend on the size or on the color scheme, never on a combination of both. */
const JUDGED = { phone: "dark", desk: "light" } as const;

const [site, browser] = await Promise.all([forFile(startSite()), forFile(launchBrowser())]);

interface Visit {
  readonly page: Page;
  readonly troubles: readonly string[];
}

async function open(size: keyof typeof SIZES): Promise<Visit> {
  const context = await browser.newContext({ viewport: SIZES[size], baseURL: site.baseUrl });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: site.baseUrl });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    const expected = message.text().includes("404 (Not Found)") && message.location().url === page.url();
    if (["error", "warning"].includes(message.type()) && !expected) troubles.push(message.text());
  });
  return { page, troubles };
}

/** The serious and critical findings of axe. */
async function seriousViolations(page: Page, scheme: (typeof SCHEMES)[number]): Promise<readonly string[]> {
  const found = await findings(page, scheme);
  return found.filter(({ impact }) => impact === "serious" || impact === "critical").map(inLine);
}

const sizes = ["phone", "desk"] as const;

test.concurrent.for(sizes)(
  "Every page fits a %s, is accessible, and logs no error",
  { timeout: 180_000 },
  async (size, { expect }) => {
    const { page, troubles } = await open(size);
    for (const [name, path] of Object.entries(site.pages)) {
      await page.goto(path);
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        if (colorScheme === JUDGED[size])
          expect(await seriousViolations(page, colorScheme), `${name}, ${colorScheme}`).toEqual([]);
        await picture(page, `${name}-${size}-${colorScheme}`);
      }
      expect(await widerThanScreen(page), `${name} scrolls sideways`).toBe(0);
    }
    expect(troubles).toEqual([]);
    await page.context().close();
  },
);

test.for(sizes)("On a %s, one button copies the README snippet", async (size) => {
  const { page, troubles } = await open(size);
  await page.goto(site.certificate);
  const button = page.getByRole("button", { name: /^Copy: Markdown/ });
  await button.click();
  await expect.poll(() => button.textContent()).toBe("Copied");
  const copied = await page.evaluate("navigator.clipboard.readText()");
  expect(copied).toBe(await page.locator("#badge-markdown").textContent());
  expect(copied).toContain(`](${site.baseUrl}${site.certificate})`);
  expect(troubles).toEqual([]);
  await page.context().close();
});

test("The badge preview loads", async () => {
  const { page } = await open("desk");
  await page.goto(site.certificate);
  await expect.poll(() => page.evaluate("document.querySelector('.badge img').naturalWidth")).toBeGreaterThan(100);
  await page.context().close();
});

test("A finding links to its exchange, which shows hostile content as text and is accessible when open", async () => {
  const { page, troubles } = await open("phone");
  await page.goto(String(site.pages["seller-pass"]));
  const answer = page.locator("#exchange-6-answer");
  expect(await answer.isVisible()).toBe(false);
  await page.getByRole("link", { name: "Exchange 6" }).first().click();
  await expect.poll(() => answer.isVisible()).toBe(true);
  expect(await answer.textContent()).toContain("<img src=x onerror=alert(1)> \\u{202e}long-words");
  expect(await seriousViolations(page, "light")).toEqual([]);
  expect(await widerThanScreen(page)).toBe(0);
  await picture(page, "seller-exchange-phone");
  expect(troubles).toEqual([]);
  await page.context().close();
});

test("The home page finds a wallet without a script, by keyboard alone", async () => {
  const { page } = await open("phone");
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

test("Every link on every page leads to a page", async () => {
  const { own } = await linksOf(browser, site.pages, { baseURL: site.baseUrl });
  expect(own.size).toBeGreaterThan(8);
  const absent = String(site.pages["not-found"]);
  await expectPages(
    site.baseUrl,
    [...own].filter((path) => !path.startsWith(absent)),
  );
});
