import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { findings, inLine, widerThanScreen } from "./accessibility.ts";

const SCREENSHOTS = fileURLToPath(new URL("../../browser/screenshots/", import.meta.url));
export const SIZES = { phone: { width: 360, height: 780 }, desk: { width: 1280, height: 800 } } as const;
export type Size = keyof typeof SIZES;
export const sizes = ["phone", "desk"] as const satisfies readonly Size[];

export interface Visit {
  readonly page: Page;
  /** Errors and warnings of the page and its scripts. */
  readonly troubles: readonly string[];
}

/** A page of its own context, on a screen of the size. */
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

/** A picture of the whole page, only on request: `SCREENSHOTS=1`. It takes as long as all checks together. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}${name}.png`, fullPage: true });
}

/** Every page fits the screen, passes axe in light and dark mode, and logs no error. */
export async function expectFit(
  browser: Browser,
  pages: Readonly<Record<string, string>>,
  { size, baseURL }: { readonly size: Size; readonly baseURL: string },
): Promise<void> {
  const { page, troubles } = await openPage(browser, { size, baseURL });
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(path);
    expect(await widerThanScreen(page), `${name} scrolls sideways`).toBe(0);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect((await findings(page, colorScheme)).map(inLine), `${name}, ${colorScheme}`).toEqual([]);
      await picture(page, `${name}-${size}-${colorScheme}`);
    }
  }
  expect(troubles).toEqual([]);
  await page.context().close();
}
