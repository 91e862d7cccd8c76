import { describe, expect, test } from "vitest";
import { staticScene } from "../../support/log/stored-log.ts";

const { service, get, raw } = await staticScene();

describe("path of a tile or checkpoint", () => {
  test.each([
    "/log/tile/00/000",
    "/log/tile/64/000",
    "/log/tile/0/0",
    "/log/tile/0/x001/x066",
    "/log/tile/0/000/",
    "/log//tile/0/000",
    "/log/tile/0/000.p",
    "/log/tile/0/000.p/0",
    "/log/tile/0/000.p/256",
    "/log/tile/0/%30%30%30",
    "/log/tile/0/000%00",
    "/log/tile/0/000%2Ep/1",
    "/log/tile/0/x001%2F066",
    "/log/tile/../../etc/passwd",
    "/log/tile/..%2f..%2fetc%2fpasswd",
    "/log/tile/0/x009/x007/x199/x254/x740/993",
    `/log/tile/0/${"x001/".repeat(300)}000`,
    "/log/",
    "/log/1/checkpoint",
    "/log/checkpoint/",
    "/log/checkpoin%74",
    "/log/x//../checkpoint",
    "/log/tile/0/001/%2e%2e/000",
    // A cache that merges slashes before it resolves dots sees one tile here, and a URL parser sees another.
    "/log/tile/0/x001//../066",
    "/log/tile/entries/x001//%2e%2e/066",
    "/log/tile/0/000#1",
    "/log/tile/0/x018/x446/x744/x073/x709/x551/616",
    "/log/tile/0/x\u0660\u0660\u0661/066",
  ])("%s is a 404 without caching", async (path) => {
    const answer = await raw(encodeURI(path).replaceAll("%25", "%"));
    expect([answer.status, answer.headers["cache-control"]]).toEqual([404, "no-store"]);
    const page = await raw(encodeURI(path).replaceAll("%25", "%"), { accept: "text/html" });
    expect([page.status, page.headers["cache-control"]]).toEqual([404, "no-store"]);
  });

  test("A 404 names the canonical path", async () => {
    const { detail } = (await (await get("tile/0/1067")).json()) as { detail: string };
    expect(detail).toMatch(/x001\/067.*from 1 to 255, without leading zeros/);
  });

  test("A full URL or a query string leads to the same tile", async () => {
    const { headers } = await raw("/log/tile/0/000");
    for (const path of [
      `${service.url}/log/tile/0/000`,
      "/log/tile/0/000?path=/log/tile/0/001&path=2",
      "/log/tile/0/000?",
    ])
      expect([path, await raw(path)]).toMatchObject([path, { status: 200, headers: { etag: headers.etag } }]);
  });

  test.each(["POST", "PUT", "PATCH", "DELETE"])("A %s is a 405 that no cache keeps", async (method) => {
    for (const path of ["checkpoint", "tile/0/000", "tile/entries/000", "entry/0.tlog-proof"]) {
      const { status, headers } = await fetch(`${service.url}/log/${path}`, { method });
      const allowed = [headers.get("allow"), headers.get("cache-control")];
      expect([path, status, ...allowed]).toEqual([path, 405, "GET, HEAD, OPTIONS", "no-store"]);
    }
  });
});
