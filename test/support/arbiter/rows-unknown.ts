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

/** What a server does that leaves the verdict open after two attempts. */
export const UNDECIDED: readonly Row[] = [
  ...[401, 402, 403, 407, 408, 425, 429, 451].map((code) =>
    escalated(`a ${code}`, sends(code), {}, status("unknown", "undecided_status")),
  ),
  ...[500, 502, 503, 599].map((code) => escalated(`a ${code}`, sends(code), {}, status("unknown", "server_error"))),
  escalated("another 5xx than agreed", sends(500), { expect_status: 503 }, status("unknown", "server_error")),
  escalated(
    "a status of 600",
    raw("HTTP/1.1 600 What\r\ncontent-length: 0\r\n\r\n"),
    {},
    status("unknown", "odd_status"),
  ),
  escalated("a 304", sends(304), {}, status("unknown", "redirect")),
  escalated("a 300", sends(300, { location: "http://shop.example/" }), {}, status("unknown", "redirect")),
  escalated("a redirect without a target", sends(302), {}, status("unknown", "redirect")),
  escalated("a redirect to nonsense", to("http://[nonsense"), {}, status("unknown", "redirect")),
  escalated("a redirect to another scheme", to("ftp://shop.example/"), {}, status("unknown", "blocked")),
  escalated("a redirect to a private address", to("http://10.0.0.1/"), {}, status("unknown", "blocked")),
  escalated("a redirect to a name of the inside", to("http://inside.example/"), {}, status("unknown", "blocked")),
  escalated("a redirect to the service", to("http://trust.example/"), {}, status("unknown", "blocked")),
  escalated(
    "a body that breaks off",
    raw("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\nshort"),
    {},
    status("unknown", "truncated"),
  ),
  escalated(
    "chunks that break off",
    raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n"),
    {},
    status("unknown", "truncated"),
  ),
  escalated(
    "a transfer coding that nobody offered",
    raw("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nxx"),
    {},
    status("unknown", "bad_response"),
  ),
  escalated("no HTTP", raw("220 mail.example ESMTP\r\n"), {}, status("unknown", "bad_response")),
  escalated(
    "headers that never end",
    ({ socket }) => {
      while (!socket.destroyed && socket.write(`x-more: ${"a".repeat(900)}\r\n`));
      socket.on("drain", () => socket.write("x: y\r\n"));
    },
    {},
    status("unknown", "bad_response"),
  ),
  escalated(
    "a connection that is closed without a word",
    ({ socket }) => socket.destroy(),
    {},
    status("unknown", "reset"),
  ),
  escalated(
    "a declared length past the cap",
    sends(200, { "content-length": String(TOO_MUCH) }),
    {},
    status("unknown", "too_large"),
  ),
  escalated("an endless body", endless({}, Buffer.alloc(65_536)), {}, status("unknown", "too_large")),
  escalated("a gzip bomb", coded("gzip", BOMB), {}, status("unknown", "too_large")),
  escalated("a bomb within a bomb", coded("gzip, gzip", gzipSync(BOMB)), {}, status("unknown", "too_large")),
  escalated(
    "a bomb whose second stage is small again",
    coded("gzip, gzip", gzipSync(gzipSync(Buffer.alloc(5_000_000)).subarray(0, 10).toString().padEnd(TOO_MUCH, "0"))),
    {},
    status("unknown", "too_large"),
  ),
  escalated(
    "corrupt gzip",
    coded("gzip", Buffer.from("not gzip at all")),
    { expect_contains: "gzip" },
    status("true", "match"),
    "expect_contains unknown not_decoded",
  ),
  escalated(
    "gzip that breaks off",
    coded("gzip", gzipSync(TEXT).subarray(0, 40)),
    { min_bytes: 1 },
    status("true", "match"),
    "min_bytes unknown not_decoded",
  ),
  escalated(
    "an unknown coding",
    coded("zstd", Buffer.from("zz")),
    { expect_sha256: sha256("else") },
    status("true", "match"),
    "expect_sha256 unknown not_decoded",
  ),
  escalated(
    "three codings",
    coded("gzip, gzip, gzip", gzipSync(gzipSync(gzipSync(TEXT)))),
    { expect_contains: "whole" },
    status("true", "match"),
    "expect_contains unknown not_decoded",
  ),
  escalated("headers that do not come", () => {}, {}, status("unknown", "timeout")),
  escalated("a body that drips", drips, {}, status("unknown", "timeout")),
  escalated(
    "a body that stops",
    (_request, response) => response.writeHead(200).write("some"),
    {},
    status("unknown", "timeout"),
  ),
];
