import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type axe from "axe-core";
import type { Page } from "playwright-core";

const SCRIPT = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/**
 * axe's findings on a page. It runs through the debugger, so the page's content security policy stays in force. In dark
 * mode only colors differ.
 */
export async function findings(page: Page, scheme: "light" | "dark"): Promise<axe.AxeResults["violations"]> {
  if (!(await page.evaluate("'axe' in window"))) {
    // What is shown now, and, far cheaper, all that is visited later.
    await page.addInitScript({ path: SCRIPT });
    await page.evaluate(await readFile(SCRIPT, "utf8"));
  }
  const { violations } = (await page.evaluate(
    `axe.run({ resultTypes: ["violations"], ${scheme === "dark" ? 'runOnly: ["color-contrast"]' : ""} })`,
  )) as axe.AxeResults;
  return violations;
}

/** A finding as a line: its rule, and where on the page. */
export const inLine = ({ id, nodes }: Pick<axe.Result, "id" | "nodes">): string =>
  `${id}: ${nodes.map((node) => node.html).join(" | ")}`;

/** How many pixels a page scrolls sideways. */
export const widerThanScreen = (page: Page) =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
