import { glob, readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { STORED_DATA } from "../../../api/site/privacy-page.ts";
import { faviconIco } from "../../../api/site/routes.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex");
const chain = await forFile(startTestChain());
const config = { operator: "Example Trust Ltd, 1 Example Street", abuseContact: "mailto:abuse@trust.example" };
const service = await forFile(startService({ chain, jobs: false, config }));
const asHtml = { headers: { accept: "text/html" } };

/** The width and height in a PNG's header. */
const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)];

describe("icons", () => {
  test("favicon.ico contains a PNG of each size in its directory", () => {
    const ico = Buffer.from(faviconIco());
    expect([ico.readUInt16LE(0), ico.readUInt16LE(2), ico.readUInt16LE(4)]).toEqual([0, 1, 3]);
    let end = 0;
    for (const [index, size] of [16, 32, 48].entries()) {
      const entry = ico.subarray(6 + 16 * index, 22 + 16 * index);
      const [length, offset] = [entry.readUInt32LE(8), entry.readUInt32LE(12)];
      const png = ico.subarray(offset, offset + length);
      expect([entry.readUInt8(0), entry.readUInt8(1), ...sizeOf(png)]).toEqual([size, size, size, size]);
      expect(png.subarray(0, 8)).toEqual(PNG);
      end = offset + length;
    }
    expect(end).toBe(ico.length);
  });

  test.each([
    ["/favicon.ico", "image/vnd.microsoft.icon"],
    ["/apple-touch-icon.png", "image/png"],
  ])("%s is served as %s and cached for one day", async (path, type) => {
    const { status, headers } = await fetch(service.url + path);
    expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
      200,
      type,
      "public, max-age=86400",
    ]);
  });

  test("The icon for home screens is a PNG of 180 by 180", async () => {
    const png = Buffer.from(await (await fetch(`${service.url}/apple-touch-icon.png`)).arrayBuffer());
    expect(sizeOf(png)).toEqual([180, 180]);
  });
});

test("robots.txt allows everything and names the sitemap", async () => {
  const { text, headers } = await send(`${service.url}/robots.txt`);
  expect(headers.get("content-type")).toMatch(/^text\/plain/);
  expect(text).toBe(`User-agent: *\nDisallow:\n\nSitemap: ${service.url}/sitemap.xml\n`);
});

test("The sitemap lists existing pages by their canonical URLs", async () => {
  const { text, headers } = await send(`${service.url}/sitemap.xml`);
  expect(headers.get("content-type")).toBe("application/xml");
  const listed = [...text.matchAll(/<url><loc>([^<]+)<\/loc><\/url>/g)].map(([, url = ""]) => url);
  expect(new Set(listed).size).toBe(listed.length);
  for (const path of ["/", "/docs", "/integrations", "/board", "/stats", "/escrow", "/escrow/demo", "/arbiter"])
    expect(listed).toContain(`${service.url}${path}`);
  for (const url of listed) {
    const page = await send(url, asHtml);
    expect(page.status, url).toBe(200);
    expect(page.text, url).toContain(`<link rel="canonical" href="${url}">`);
    expect(page.text, url).toMatch(/<meta name="description" content="[^"]{20,}">/);
  }
});

test("No page or README runs one of our packages by its bare name, which anyone could register", async () => {
  const texts = new Map<string, string>();
  for (const path of [
    "/docs/packages",
    "/docs/verify",
    "/docs/seller",
    "/integrations",
    "/llms-full.txt",
    "/test/seller",
  ])
    texts.set(path, (await send(service.url + path, asHtml)).text);
  for await (const file of glob(["*.md", "docs/*.md", "packages/*/README.md", "packages/*/src/**/*.ts"]))
    if (file !== "CHANGELOG.md") texts.set(file, await readFile(file, "utf8"));
  expect(texts.size).toBeGreaterThan(30);
  for (const [name, text] of texts)
    expect([name, text.match(/npx (?!-y --allow-remote=root |--no-install )[^\n]*agent-payment-trust[^\n]*/g)]).toEqual(
      [name, null],
    );
});

/** Files, recognizable by their URLs. */
const IS_FILE = /\.(svg|png|txt|tgz|whl|tlog-proof)$|\/log\/checkpoint$/;

test("Every link leads to a page or is labeled as JSON or a file, and every fragment exists", async () => {
  const { path: certificate } = await certified();
  const [pages, left] = [new Map<string, string>(), ["/", certificate]];
  const files = new Map<string, string>();
  while (left.length > 0) {
    const path = left.pop() as string;
    if (pages.has(path) || files.has(path)) continue;
    const { status, text, headers } = await send(service.url + path, asHtml);
    expect([path, status]).toEqual([path, 200]);
    if (!headers.get("content-type")?.startsWith("text/html")) {
      files.set(path, headers.get("content-type") ?? "");
      continue;
    }
    pages.set(path, text);
    for (const { to } of linksOf(text, path)) left.push(to);
  }
  expect(pages.size).toBeGreaterThan(30);
  for (const [path, text] of pages)
    for (const { to, fragment, tag } of linksOf(text, path)) {
      if (files.get(to)?.includes("json")) expect([path, to, tag]).toEqual([path, to, expect.stringContaining("JSON")]);
      else if (files.has(to)) expect([path, to]).toEqual([path, expect.stringMatching(IS_FILE)]);
      if (fragment !== "" && pages.has(to))
        expect([path, to, pages.get(to)?.includes(`id="${fragment}"`), fragment]).toEqual([path, to, true, fragment]);
    }
});

/** The links of a page within this service, with their text and attributes. */
function linksOf(page: string, path: string): readonly { to: string; fragment: string; tag: string }[] {
  return [...page.matchAll(/<a ([^>]*)>(.*?)<\/a>/gs)].flatMap(([, attributes = "", text = ""]) => {
    const href = /href="([^"]*)"/.exec(attributes)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const url = new URL(href, service.url + path);
    if (url.origin !== service.url) return [];
    return [
      {
        to: url.pathname + url.search,
        fragment: url.hash.slice(1),
        tag: `${attributes.replace(/href="[^"]*"/, "")} ${text}`,
      },
    ];
  });
}

async function certified(): Promise<{ path: string }> {
  const { body } = await post(`${service.url}/test/basic`, v2(await signPayment(await newPayer(chain))));
  return { path: new URL(String(body.cert_url)).pathname };
}

describe("browser on a route for programs", () => {
  test.each([
    ["GET /test/basic", 405, /POST \/test\/basic<\/code> costs <strong>0\.25 USDC/],
    ["POST /test/basic", 402, /POST \/test\/basic<\/code> costs <strong>0\.25 USDC/],
    ["DELETE /verify", 405, /it allows GET, HEAD, POST, OPTIONS/],
    ["GET /verify?wallet=nonsense", 400, /href="\/docs\/errors#malformed_request"/],
    ["GET /purchases", 402, /Paid route 402|Payment required/],
    ["GET /inspect", 200, /What we test/],
    ["GET /test/seller", 200, /The seller’s exam/],
  ])("%s is a page with status %i, and JSON for other clients", async (request, status, content) => {
    const [method = "", path = ""] = request.split(" ");
    const page = await fetch(service.url + path, { method, headers: { accept: "text/html,*/*;q=0.8" } });
    expect([page.status, page.headers.get("content-type")]).toEqual([status, "text/html; charset=utf-8"]);
    expect(await page.text()).toMatch(content);
    for (const accept of ["*/*", "application/json"]) {
      const json = await fetch(service.url + path, { method, headers: { accept } });
      expect([json.status, json.headers.get("content-type")]).toEqual([status, expect.stringMatching(/json/)]);
      for (const name of ["allow", "payment-required", "retry-after"])
        expect(page.headers.has(name)).toBe(json.headers.has(name));
      await json.arrayBuffer();
    }
  });
});

test("The privacy page names the stored data with its duration and purpose, the operator, and the contact", async () => {
  const text = await send(`${service.url}/privacy`);
  const page = await send(`${service.url}/privacy`, { headers: { accept: "text/html" } });
  expect(text.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  for (const shown of [text.text, page.text]) {
    for (const value of Object.values(config)) expect(shown).toContain(value);
    expect(shown.split("Rehearsals")).toHaveLength(2);
  }
  expect((await send(`${service.url}/terms`)).text).toContain(config.operator);
});

test("Every table of the database is in exactly one row of the stored data", async () => {
  const owner = await forFile(connectOwner(service.database));
  const { rows } = await owner.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname",
  );
  expect(STORED_DATA.flatMap(({ tables }) => tables).toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});
