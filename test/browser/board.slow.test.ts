import { expect, test } from "vitest";
import { boardSeeder, type Seed } from "../support/board.ts";
import { expectFit, expectFitting, launchBrowser, openPage, type Size, sizes } from "../support/browser/browser.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { startService } from "../support/service/service.ts";

const PAGES = {
  board: "/board",
  "board-capability": "/board?capability=full_suite",
  "board-last": "",
  stats: "/stats",
};
const DAY_MS = 86_400_000;

/**
 * Sixty wallets, more on some days than on others, few enough on one day to be withheld, and a product with few
 * failures.
 */
function seeds(): readonly Seed[] {
  const at = (days: number, order: number) => new Date(Date.now() - days * DAY_MS - order * 60_000);
  const busy = Array.from({ length: 30 }, (_, days) =>
    Array.from({ length: days === 4 ? 3 : days % 7 === 0 ? 0 : 5 + ((days * 5) % 11) }, (_, order) => ({
      wallet: 1 + ((days * 13 + order) % 60),
      issuedAt: at(days, order),
      product: order % 3 === 1 ? ("suite" as const) : ("basic" as const),
    })),
  ).flat();
  const failures = Array.from({ length: 6 }, (_, order) => ({
    wallet: 40 + order,
    issuedAt: at(2, 30 + order),
    result: "fail" as const,
  }));
  return [...busy, ...failures, { wallet: 50, issuedAt: at(3, 40), product: "suite", result: "fail" }];
}

const chain = await forFile(startTestChain());
const [service, empty, browser] = await Promise.all([
  forFile(startService({ chain, jobs: false })),
  forFile(startService({ chain, jobs: false })),
  forFile(launchBrowser()),
]);
const seeder = boardSeeder(service.database);
await seeder.add(...seeds());
await seeder.stop();
const first = await (await fetch(`${service.url}/board`)).json();
PAGES["board-last"] = String((first as { next: unknown }).next);

const open = (size: Size, baseURL = service.url) => openPage(browser, { size, baseURL });

test.concurrent.for(sizes)(
  "On a %s, board and statistics are accessible, fit, and have no error and no dead link",
  async (size) => {
    await expectFit(browser, PAGES, { size, baseURL: service.url });
    const { page, troubles } = await open(size);
    await page.goto("/stats");
    await page.getByText("The same figures as a table").click();
    await expectFitting(page, "stats-table", size);
    expect(troubles).toEqual([]);
    await page.context().close();
  },
);

test("Board and statistics state that there are no certificates", async () => {
  const { page, troubles } = await open("phone", empty.url);
  await page.goto("/board");
  expect(await page.getByText("No agent is currently certified.").isVisible()).toBe(true);
  await expectFitting(page, "board-empty", "phone");
  await page.goto("/stats");
  await expectFitting(page, "stats-empty", "phone");
  expect(troubles).toEqual([]);
  await page.context().close();
});

test("The chart's labels are readable on a phone, lie inside the chart, and do not overlap", async () => {
  for (const size of sizes) {
    const { page } = await open(size);
    await page.goto("/stats");
    const chart = page.getByRole("img", { name: "Certificates per day" });
    expect(await chart.evaluate((svg) => svg.querySelector("desc")?.textContent)).toMatch(
      /^30 bars.*The highest is \d+ on/,
    );
    const frame = await chart.boundingBox();
    const boxes = await chart.locator("text").evaluateAll((texts) =>
      texts.map((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect();
        return { left, right, top, bottom, label: text.textContent };
      }),
    );
    expect(boxes.length).toBeGreaterThan(7);
    for (const one of boxes) {
      expect(one.bottom - one.top, one.label ?? "").toBeGreaterThanOrEqual(13);
      expect(one.left, one.label ?? "").toBeGreaterThanOrEqual((frame?.x ?? 0) - 1);
      expect(one.right, one.label ?? "").toBeLessThanOrEqual((frame?.x ?? 0) + (frame?.width ?? 0) + 1);
      for (const other of boxes.filter((box) => box !== one)) {
        const apart =
          one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
        expect(apart, `${one.label} and ${other.label}`).toBe(true);
      }
    }
    await page.context().close();
  }
});

test("The table next to the chart has the same figures as the JSON", async () => {
  const { page } = await open("phone");
  await page.goto("/stats");
  await page.getByText("The same figures as a table").click();
  const cells = await page.locator("details tbody td").allTextContents();
  const { days } = (await (await fetch(`${service.url}/stats`)).json()) as { days: { certificates: number | null }[] };
  expect(cells).toEqual(
    days.toReversed().map(({ certificates }) => certificates?.toLocaleString("en-US") ?? "withheld"),
  );
  expect(cells).toContain("withheld");
  await page.context().close();
});

test("A reader pages through the board, sees every badge, and returns to the newest page", async () => {
  const { page } = await open("desk");
  await page.goto("/board");
  const shown = () => page.locator("ol.rows > li").count();
  let total = await shown();
  while (await page.getByRole("link", { name: "Older" }).isVisible()) {
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForLoadState();
    total += await shown();
  }
  const { wallets } = (await (await fetch(`${service.url}/stats`)).json()) as { wallets: { certified_now: number } };
  expect(total).toBe(wallets.certified_now);
  await page.getByRole("link", { name: "Newest" }).click();
  await page.waitForURL("**/board");
  await page.getByRole("link", { name: "Full payment suite" }).click();
  await page.waitForURL("**/board?capability=full_suite");
  for (const badge of await page.locator("ol.rows img").all()) {
    await badge.scrollIntoViewIfNeeded();
    await expect
      .poll(() => badge.evaluate((img) => (img as unknown as { naturalWidth: number }).naturalWidth))
      .toBeGreaterThan(100);
  }
  await page.context().close();
});
