import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { DOCS_PAGES } from "../../api/site/docs-pages.ts";
import { expectFit, launchBrowser, openPage, type Size, sizes } from "../support/browser/browser.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { startService } from "../support/service/service.ts";

const PAGES: Readonly<Record<string, string>> = {
  ...{ home: "/", docs: "/docs", pay: "/pay", tests: "/inspect", "seller-exam": "/test/seller" },
  ...Object.fromEntries(DOCS_PAGES.map(({ path }) => [path.slice(1).replaceAll("/", "-"), path])),
};
const names = Object.keys(PAGES);
const PICTURES = Object.fromEntries(names.map((name) => [`site-${name}`, String(PAGES[name])]));
const MAX_BYTES = 100_000;

const [chain, browser] = await Promise.all([forFile(startTestChain()), forFile(launchBrowser())]);
const service = await forFile(startService({ chain }));

const open = (size: Size, javaScriptEnabled = true) =>
  openPage(browser, { size, baseURL: service.url, javaScriptEnabled });

test.concurrent.for(sizes)(
  "Every page for readers fits a %s, has no axe findings, no error, and no dead link",
  { timeout: 180_000 },
  (size) => expectFit(browser, PICTURES, { size, baseURL: service.url }),
);

const [full, bare] = [(await open("desk")).page, (await open("desk", false)).page];

test.for(names)(
  "%s is one response of less than 100 KB that loads nothing else, and shows the same text without JavaScript",
  async (name) => {
    const path = String(PAGES[name]);
    const asked: string[] = [];
    full.on("request", (request) => {
      if (!request.url().startsWith("data:")) asked.push(new URL(request.url()).pathname);
    });
    const answer = await full.goto(path, { waitUntil: "networkidle" });
    full.removeAllListeners("request");
    expect(asked).toEqual([path]);
    expect((await answer?.body())?.byteLength).toBeLessThan(MAX_BYTES);
    expect(answer?.headers()["content-security-policy"]).toMatch(
      /^default-src 'none'; script-src 'sha256-[^;]*; style-src 'sha256-[^;]*;/,
    );
    await bare.goto(path);
    const text = await textOf(bare);
    expect(text.length).toBeGreaterThan(500);
    expect(text).toBe(await textOf(full));
  },
);

async function textOf(page: Page): Promise<string> {
  const text = (await page.evaluate("document.querySelector('main').innerText")) as string;
  return text.replaceAll(/\bCopy\b/g, "").replaceAll(/\s+/g, " ");
}

test("The contents are filtered as the reader types, without another request", async () => {
  const { page } = await open("desk");
  await page.goto("/docs?q=nonce+settled");
  const shown = () => page.locator(".index li:visible a").allTextContents();
  expect(await shown()).toContain("Look up a payment");
  expect((await shown()).length).toBeLessThan(6);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.getByRole("searchbox").fill("flask");
  expect(await shown()).toContain("Add the gate");
  await page.getByRole("searchbox").fill("");
  expect((await shown()).length).toBeGreaterThan(30);
  expect(asked).toEqual([]);
  await page.context().close();
});

test.for([true, false])("A key press switches a sample's language, with JavaScript: %j", async (script) => {
  const { page } = await open("desk", script);
  await page.goto("/docs/tests");
  const python = page.locator("#scam-test-py");
  expect(await python.isVisible()).toBe(false);
  await page.getByRole("radio", { name: "TypeScript" }).first().focus();
  await page.keyboard.press("ArrowRight");
  expect(await python.isVisible()).toBe(true);
  expect(await page.locator("#scam-test").isVisible()).toBe(false);
  // The script also switches the page's other samples and the next page.
  expect(await page.locator("#retry-test-py").isVisible()).toBe(script);
  await page.goto("/docs/pay");
  expect(await page.locator("#pay-py").isVisible()).toBe(script);
  await page.emulateMedia({ media: "print" });
  for (const id of ["#pay", "#pay-py"]) expect(await page.locator(id).isVisible()).toBe(true);
  expect(await page.locator(".side").isVisible()).toBe(false);
  await page.context().close();
});

test("A problem's type links to its entry", async () => {
  const { type, code } = (await (await fetch(`${service.url}/nowhere`)).json()) as Record<string, string>;
  expect(code).toBe("not_found");
  const { page } = await open("desk");
  await page.goto(`${type}`);
  expect(await page.locator(":target").textContent()).toMatch(/^Not found not_found\s*404/);
  await page.context().close();
});
