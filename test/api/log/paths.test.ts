import { describe, expect, test } from "vitest";
import { verdictPath } from "../../../api/arbiter/document.ts";
import { policyPath } from "../../../api/arbiter/overview.ts";
import { certUrl } from "../../../api/certificates/links.ts";
import { contestPath } from "../../../api/escrow/contest/contest-record.ts";
import { evaluationPath } from "../../../api/escrow/record.ts";
import { entryPath, logPath, proofPath, recordPath } from "../../../api/log/log-paths.ts";
import { ENTRY_TYPES, type EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { staticScene } from "../../support/log/stored-log.ts";

const { service, get, raw, spoken } = await staticScene();

describe("only the canonical path", () => {
  test.each([
    "/log/tile/00/000",
    "/log/tile/64/000",
    "/log/tile/0/0",
    "/log/tile/0/0000",
    "/log/tile/0/x000/000",
    "/log/tile/0/001/067",
    "/log/tile/0/x001/x066",
    "/log/tile/0/000/",
    "/log//tile/0/000",
    "/log/tile/0/000.p",
    "/log/tile/0/000.p/0",
    "/log/tile/0/000.p/01",
    "/log/tile/0/000.p/256",
    "/log/tile/0/%30%30%30",
    "/log/tile/0/000%00",
    "/log/tile/0/000%2Ep/1",
    "/log/tile/0/x001%2F066",
    "/log/tile/../../etc/passwd",
    "/log/tile/..%2f..%2fetc%2fpasswd",
    "/log/tile/0/\u0661",
    "/log/tile/0/x009/x007/x199/x254/x740/993",
    `/log/tile/0/${"x001/".repeat(300)}000`,
    "/log/tile/data/000",
    "/log/tile/entries",
    "/log/tile",
    "/log/",
    "/log/1/checkpoint",
    "/log/checkpoint/",
    "/log/checkpoin%74",
    "/log/./checkpoint",
    "/log/x//../checkpoint",
    "/log/tile/0/./000",
    "/log/tile/0/001/%2e%2e/000",
    // One tile for a cache that merges slashes before it resolves dots, and another one for a URL's parser.
    "/log/tile/0/x001//../066",
    "/log/tile/entries/x001//%2e%2e/066",
    "/log/tile/0/000#1",
    "/log/tile/0/000.p/257",
    "/log/tile/0/000.p/+1",
    "/log/tile/0/000.p/1.p/1",
    "/log/tile/+0/000",
    "/log/tile/0/x018/x446/x744/x073/x709/x551/616",
    "/log/tile/entries/0/000",
    "/log/tile/entries/x000/000",
    "/log/tile/entries/000.p/256",
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

  test("may be asked for by pages of every origin", async () => {
    const headers = { origin: "https://other.example", "access-control-request-method": "GET" };
    for (const path of ["checkpoint", "tile/0/000", "tile/entries/000"]) {
      const preflight = await fetch(`${service.url}/log/${path}`, { method: "OPTIONS", headers });
      expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, "*"]);
    }
  });

  test("is enough for a client of HTTP/1.0, which names no host", async () => {
    const said = await spoken("GET /log/tile/0/000.p/1 HTTP/1.0\r\n\r\n");
    expect(said).toMatch(/^HTTP\/1\.\d 200 OK\r\n.*content-length: 32\r\n/is);
  });

  test("is not asked for with more than 96 KiB of headers", async () => {
    const said = await spoken(`GET /log/checkpoint HTTP/1.1\r\nhost: x\r\nx: ${"x".repeat(98_304)}\r\n\r\n`);
    expect(said).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe("the paths of records and logs", () => {
  const PAYMENT = `0x${"ab".repeat(32)}` as const;
  const SELLER = "0123456789abcdef0123456789abcdef";
  const CERTIFICATE = certUrl("", { id: "0123456789abcdef" });
  const VERDICT = verdictPath("0123456789abcdef0123456789abcdef");

  test.each<[EntryType, string, [record: string, proof: string]]>([
    ["certificate", "0123456789abcdef", [CERTIFICATE, `${CERTIFICATE}.tlog-proof`]],
    ["reversal", "0123456789abcdef", [CERTIFICATE, `${CERTIFICATE}.tlog-proof?type=reversal`]],
    ["proof", "0123456789abcdef", [CERTIFICATE, `${CERTIFICATE}.tlog-proof?type=proof`]],
    ["seller_certificate", SELLER, [`/cert/${SELLER}`, `/cert/${SELLER}.tlog-proof`]],
    ["seller_correction", SELLER, [`/cert/${SELLER}`, `/cert/${SELLER}.tlog-proof?type=seller_correction`]],
    ["verdict", "0123456789abcdef0123456789abcdef", [VERDICT, `${VERDICT}.tlog-proof`]],
    ["correction", "0123456789abcdef0123456789abcdef", [VERDICT, `${VERDICT}.tlog-proof`]],
    ["evaluation", PAYMENT, [evaluationPath(PAYMENT), `${evaluationPath(PAYMENT)}.tlog-proof`]],
    ["contest_answer", PAYMENT, [contestPath(PAYMENT), `${evaluationPath(PAYMENT)}.tlog-proof?type=contest_answer`]],
    ["policy", "2", [policyPath(2), "/log/entry/7.tlog-proof"]],
    ["score_version", "3", ["/docs#score", "/log/entry/7.tlog-proof"]],
    ["signing_key", "kid", ["/.well-known/jwks.json", "/log/entry/7.tlog-proof"]],
  ])("an entry of type %s about %s links its record and its proof: %j", (type, ref, [record, proof]) => {
    expect(recordPath({ type, ref })).toBe(record);
    expect(proofPath({ type, ref, generation: 1, index: 7 })).toBe(proof);
  });

  test("every type of entry is above", () => expect(ENTRY_TYPES).toHaveLength(12));

  test("a later log has its number in its path, the first one has none", () => {
    expect([logPath(1), logPath(2)]).toEqual(["/log", "/log/2"]);
    expect(entryPath({ generation: 2, index: 0 })).toBe("/log/2/entry/0");
  });
});
