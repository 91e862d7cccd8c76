import { describe, expect, test } from "vitest";
import { faviconIco } from "../../../api/site/icons.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex");
const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, jobs: false }));
const asHtml = { headers: { accept: "text/html" } };

/** Width and height that a PNG says of itself. */
const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)];

describe("favicon.ico", () => {
  test("has a picture of each size that its directory names", () => {
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
  ])("%s is served as %s, and may be kept for a day", async (path, type) => {
    const { status, headers } = await fetch(service.url + path);
    expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
      200,
      type,
      "public, max-age=86400",
    ]);
  });

  test("the icon for home screens is a PNG of 180 by 180", async () => {
    const png = Buffer.from(await (await fetch(`${service.url}/apple-touch-icon.png`)).arrayBuffer());
    expect(sizeOf(png)).toEqual([180, 180]);
  });
});

test("robots.txt lets everybody read and names the sitemap", async () => {
  const { text, headers } = await send(`${service.url}/robots.txt`);
  expect(headers.get("content-type")).toMatch(/^text\/plain/);
  expect(text).toBe(`User-agent: *\nDisallow:\n\nSitemap: ${service.url}/sitemap.xml\n`);
});

test("the sitemap lists pages that are there, each by its canonical address", async () => {
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
