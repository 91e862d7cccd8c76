import { gzipSync } from "node:zlib";
import {
  BOMB,
  coded,
  drips,
  endless,
  escalated,
  type Row,
  raw,
  sends,
  sha256,
  status,
  TEXT,
  TOO_MUCH,
  to,
} from "./rows.ts";

/** Server behavior that leaves the verdict open after two attempts. */
export const UNDECIDED: readonly Row[] = [
  ...[401, 402, 403, 407, 408, 425, 429, 451].map((code) =>
    escalated(`a ${code}`, sends(code), { findings: [status("unknown", "undecided_status")] }),
  ),
  ...[500, 502, 503, 599].map((code) =>
    escalated(`a ${code}`, sends(code), { findings: [status("unknown", "server_error")] }),
  ),
  escalated("another 5xx than agreed", sends(500), {
    conditions: { expect_status: 503 },
    findings: [status("unknown", "server_error")],
  }),
  escalated("a status of 600", raw("HTTP/1.1 600 What\r\ncontent-length: 0\r\n\r\n"), {
    findings: [status("unknown", "odd_status")],
  }),
  escalated("a 304", sends(304), { findings: [status("unknown", "redirect")] }),
  escalated("a 300", sends(300, { location: "http://shop.example/" }), { findings: [status("unknown", "redirect")] }),
  escalated("a redirect without a target", sends(302), { findings: [status("unknown", "redirect")] }),
  escalated("a redirect to nonsense", to("http://[nonsense"), { findings: [status("unknown", "redirect")] }),
  escalated("a redirect to another scheme", to("ftp://shop.example/"), { findings: [status("unknown", "blocked")] }),
  escalated("a redirect to a private address", to("http://10.0.0.1/"), { findings: [status("unknown", "blocked")] }),
  escalated("a redirect to a name of the inside", to("http://inside.example/"), {
    findings: [status("unknown", "blocked")],
  }),
  escalated("a redirect to the service", to("http://trust.example/"), { findings: [status("unknown", "blocked")] }),
  escalated("a body that breaks off", raw("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\nshort"), {
    findings: [status("unknown", "truncated")],
  }),
  escalated("chunks that break off", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n"), {
    findings: [status("unknown", "truncated")],
  }),
  escalated("a transfer coding that nobody offered", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nxx"), {
    findings: [status("unknown", "bad_response")],
  }),
  escalated("no HTTP", raw("220 mail.example ESMTP\r\n"), { findings: [status("unknown", "bad_response")] }),
  escalated(
    "headers that never end",
    ({ socket }) => {
      while (!socket.destroyed && socket.write(`x-more: ${"a".repeat(900)}\r\n`));
      socket.on("drain", () => socket.write("x: y\r\n"));
    },
    { findings: [status("unknown", "bad_response")] },
  ),
  escalated("a connection that is closed without a word", ({ socket }) => socket.destroy(), {
    findings: [status("unknown", "reset")],
  }),
  escalated("a declared length past the cap", sends(200, { "content-length": String(TOO_MUCH) }), {
    findings: [status("unknown", "too_large")],
  }),
  escalated("an endless body", endless({}, Buffer.alloc(65_536)), { findings: [status("unknown", "too_large")] }),
  escalated("a gzip bomb", coded("gzip", BOMB), { findings: [status("unknown", "too_large")] }),
  escalated("a bomb within a bomb", coded("gzip, gzip", gzipSync(BOMB)), {
    findings: [status("unknown", "too_large")],
  }),
  escalated(
    "a bomb whose second stage is small again",
    coded("gzip, gzip", gzipSync(gzipSync(Buffer.alloc(5_000_000)).subarray(0, 10).toString().padEnd(TOO_MUCH, "0"))),
    { findings: [status("unknown", "too_large")] },
  ),
  escalated("corrupt gzip", coded("gzip", Buffer.from("not gzip at all")), {
    conditions: { expect_contains: "gzip" },
    findings: [status("true", "match"), "expect_contains unknown not_decoded"],
  }),
  escalated("gzip that breaks off", coded("gzip", gzipSync(TEXT).subarray(0, 40)), {
    conditions: { min_bytes: 1 },
    findings: [status("true", "match"), "min_bytes unknown not_decoded"],
  }),
  escalated("an unknown coding", coded("zstd", Buffer.from("zz")), {
    conditions: { expect_sha256: sha256("else") },
    findings: [status("true", "match"), "expect_sha256 unknown not_decoded"],
  }),
  escalated("three codings", coded("gzip, gzip, gzip", gzipSync(gzipSync(gzipSync(TEXT)))), {
    conditions: { expect_contains: "whole" },
    findings: [status("true", "match"), "expect_contains unknown not_decoded"],
  }),
  escalated("headers that do not come", () => {}, { findings: [status("unknown", "timeout")] }),
  escalated("a body that drips", drips, { findings: [status("unknown", "timeout")] }),
  escalated("a body that stops", (_request, response) => response.writeHead(200).write("some"), {
    findings: [status("unknown", "timeout")],
  }),
];
