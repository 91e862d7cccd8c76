import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectFit, launchBrowser, openPage, type Size, sizes } from "../support/browser/browser.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { startService } from "../support/service/service.ts";

const PAGES = { home: "/", docs: "/docs", integrations: "/integrations", pay: "/pay" } as const;
const names = Object.keys(PAGES) as (keyof typeof PAGES)[];
const PICTURES = Object.fromEntries(names.map((name) => [`site-${name}`, PAGES[name]]));
const MAX_BYTES = 100_000;

const [chain, browser] = await Promise.all([forFile(startTestChain()), forFile(launchBrowser())]);
const service = await forFile(startService({ chain }));

const open = (size: Size, javaScriptEnabled = true) =>
  openPage(browser, { size, baseURL: service.url, javaScriptEnabled });

test.concurrent.for(sizes)(
  "every page for readers fits a %s, has nothing that axe finds, and logs no error",
  { timeout: 60_000 },
  (size) => expectFit(browser, PICTURES, { size, baseURL: service.url }),
);

test.for(names)("%s is one answer of less than 100 KB that loads nothing else", async (name) => {
  const { page } = await open("desk");
  const asked: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith("data:")) asked.push(new URL(request.url()).pathname);
  });
  const answer = await page.goto(PAGES[name], { waitUntil: "networkidle" });
  expect(asked).toEqual([PAGES[name]]);
  expect((await answer?.body())?.byteLength).toBeLessThan(MAX_BYTES);
  expect(answer?.headers()["content-security-policy"]).toMatch(
    /^default-src 'none'; script-src 'sha256-[^;]*; style-src 'sha256-[^;]*;/,
  );
  await page.context().close();
});

test.for(names)("%s says everything without JavaScript, too", async (name) => {
  const [bare, full] = [await open("desk", false), await open("desk")];
  const textOf = async (page: Page) => {
    await page.goto(PAGES[name]);
    const text = (await page.evaluate("document.querySelector('main').innerText")) as string;
    return text.replaceAll(/\bCopy\b/g, "").replaceAll(/\s+/g, " ");
  };
  const text = await textOf(bare.page);
  expect(text.length).toBeGreaterThan(500);
  expect(text).toBe(await textOf(full.page));
  await bare.page.context().close();
  await full.page.context().close();
});

test("every link on the pages and in their navigation answers, and every fragment exists", async () => {
  const { page } = await open("desk");
  const links = new Set<string>();
  for (const name of names) {
    await page.goto(PAGES[name]);
    for (const link of await page.locator("a[href]").all()) {
      const url = new URL((await link.getAttribute("href")) ?? "", page.url());
      if (url.origin === service.url) links.add(`${url.pathname}${url.search}${url.hash}`);
    }
  }
  expect(links.size).toBeGreaterThan(20);
  for (const link of links) {
    const answer = await fetch(`${service.url}${link}`, { headers: { accept: "text/html" } });
    const [, fragment] = link.split("#");
    expect(answer.status, link).toBe(200);
    if (fragment) expect(await answer.text(), link).toContain(`id="${fragment}"`);
  }
  await page.context().close();
});

test("the type of a problem leads to its entry", async () => {
  const { type, code } = (await (await fetch(`${service.url}/nowhere`)).json()) as Record<string, string>;
  expect(code).toBe("not_found");
  const { page } = await open("desk");
  await page.goto(`${type}`);
  expect(await page.locator(":target").textContent()).toMatch(/^Not found not_found\s*404/);
  await page.context().close();
});
