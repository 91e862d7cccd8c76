import { describe, expect, test } from "vitest";
import { staticScene } from "../../support/log/stored-log.ts";

const { service, get, raw } = await staticScene();

describe("only the canonical path", () => {
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
    // One tile for a cache that merges slashes before it resolves dots, and another one for a URL's parser.
    "/log/tile/0/x001//../066",
    "/log/tile/entries/x001//%2e%2e/066",
    "/log/tile/0/000#1",
    "/log/tile/0/x018/x446/x744/x073/x709/x551/616",
    "/log/tile/0/x\u0660\u0660\u0661/066",
  ])("is answered, not %s", async (path) => {
    const answer = await raw(encodeURI(path).replaceAll("%25", "%"));
    expect([answer.status, answer.headers["cache-control"]]).toEqual([404, "no-store"]);
    const page = await raw(encodeURI(path).replaceAll("%25", "%"), { accept: "text/html" });
    expect([page.status, page.headers["cache-control"]]).toEqual([404, "no-store"]);
  });

  test("is said in the answer to another one", async () => {
    const { detail } = (await (await get("tile/0/1067")).json()) as { detail: string };
    expect(detail).toMatch(/x001\/067.*from 1 to 255, without leading zeros/);
  });

  test("is taken from a whole URL as well, and without its query", async () => {
    const { headers } = await raw("/log/tile/0/000");
    for (const path of [
      `${service.url}/log/tile/0/000`,
      "/log/tile/0/000?path=/log/tile/0/001&path=2",
      "/log/tile/0/000?",
    ])
      expect([path, await raw(path)]).toMatchObject([path, { status: 200, headers: { etag: headers.etag } }]);
  });

  test.each(["POST", "PUT", "PATCH", "DELETE"])("takes no %s, and says so to caches too", async (method) => {
    for (const path of ["checkpoint", "tile/0/000", "tile/entries/000", "entry/0.tlog-proof"]) {
      const { status, headers } = await fetch(`${service.url}/log/${path}`, { method });
      const said = [headers.get("allow"), headers.get("cache-control")];
      expect([path, status, ...said]).toEqual([path, 405, "GET, HEAD, OPTIONS", "no-store"]);
    }
  });
});
