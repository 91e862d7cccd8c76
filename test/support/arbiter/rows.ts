import { createHash } from "node:crypto";
import { brotliCompressSync, deflateRawSync, gzipSync } from "node:zlib";
import type { Handler } from "./site.ts";

export const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
export const TEXT = "Grüße: the deliverable, whole and as agreed. ".repeat(40);
const HTML = { "content-type": "text/html" };
const TOO_MUCH = 10 * 1024 * 1024 + 1;

export const sends =
  (status: number, headers: Record<string, string> = {}, body: string | Uint8Array = ""): Handler =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);
/** Sends these bytes unchanged, with any headers that they claim. */
const raw =
  (text: string): Handler =>
  ({ socket }) =>
    socket.end(text);
const endless =
  (headers: Record<string, string>, chunk: Uint8Array): Handler =>
  (_request, response) => {
    response.writeHead(200, headers);
    const more = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", more);
    more();
  };
const drips: Handler = (_request, response) => {
  response.writeHead(200);
  const timer = setInterval(() => response.write("."), 40);
  response.on("close", () => clearInterval(timer));
};
/** 12 MiB of zeros, in about 12 KiB. */
const BOMB = gzipSync(Buffer.alloc(12 * 1024 * 1024));
const coded = (coding: string, bytes: Uint8Array): Handler => sends(200, { "content-encoding": coding }, bytes);
export const to = (location: string, status = 302): Handler => sends(status, { location });

export interface Row {
  readonly is: string;
  readonly serve: Handler;
  readonly conditions?: Record<string, unknown>;
  readonly verdict: "release" | "refund" | "escalate";
  readonly findings: readonly string[];
  /** The number of requests to the first path, which is 2 if the first attempt was inconclusive. */
  readonly asked: number;
  /** The differences in version 2, other than confirming a false condition with a second attempt. */
  readonly v2?: Partial<Pick<Row, "verdict" | "findings" | "asked">>;
}

const status = (result: string, reason: string): string => `status ${result} ${reason}`;
interface Expected {
  readonly conditions?: Record<string, unknown>;
  readonly findings?: readonly string[];
  readonly v2?: Row["v2"];
}

const TWICE = { asked: 2 };
const REFUSED = { verdict: "escalate", findings: [status("unknown", "undecided_status")], asked: 2 } as const;

const released = (is: string, serve: Handler, { conditions = {}, findings = [], v2 = {} }: Expected = {}): Row => ({
  is,
  serve,
  conditions,
  verdict: "release",
  findings: [status("true", "match"), ...findings],
  asked: 1,
  v2,
});
const refunded = (is: string, serve: Handler, { conditions = {}, findings = [], v2 = TWICE }: Expected): Row => ({
  is,
  serve,
  conditions,
  verdict: "refund",
  findings,
  asked: 1,
  v2,
});
const escalated = (is: string, serve: Handler, { conditions = {}, findings = [] }: Expected): Row => ({
  is,
  serve,
  conditions,
  verdict: "escalate",
  findings,
  asked: 2,
});

/** Server behavior, and the verdict of its first attempt. */
export const DECIDED: readonly Row[] = [
  released("a 200", sends(200, HTML, TEXT)),
  released("any 2xx", sends(226, {}, TEXT)),
  released("a 204 without a body", sends(204), {
    v2: { verdict: "escalate", findings: [status("unknown", "empty_body")], asked: 2 },
  }),
  released("an agreed 204", sends(204), { conditions: { expect_status: 204 } }),
  released("an agreed 404", sends(404, {}, TEXT), {
    conditions: { expect_status: 404 },
    v2: TWICE,
  }),
  released("an agreed 503", sends(503, {}, TEXT), { conditions: { expect_status: "503" }, v2: TWICE }),
  released("an agreed redirect, which is not followed", to("http://10.0.0.1/"), {
    conditions: { expect_status: 302 },
  }),
  released("the agreed hash", sends(200, {}, TEXT), {
    conditions: { expect_sha256: sha256(TEXT) },
    findings: ["expect_sha256 true match"],
  }),
  released("the agreed hash in upper case", sends(200, {}, TEXT), {
    conditions: { expect_sha256: `0x${sha256(TEXT).toUpperCase()}` },
    findings: ["expect_sha256 true match"],
  }),
  released("exactly the least length", sends(200, {}, "12345"), {
    conditions: { min_bytes: 5 },
    findings: ["min_bytes true match"],
  }),
  released("the agreed text", sends(200, {}, TEXT), {
    conditions: { expect_contains: "üße: the" },
    findings: ["expect_contains true match"],
  }),
  released("a body of exactly 10 MiB", sends(200, {}, Buffer.alloc(TOO_MUCH - 1)), {
    conditions: { min_bytes: TOO_MUCH - 1 },
    findings: ["min_bytes true match"],
  }),
  released("a body until the end of the connection", raw(`HTTP/1.1 200 OK\r\n\r\n${TEXT}`), {
    conditions: { expect_sha256: sha256(TEXT) },
    findings: ["expect_sha256 true match"],
  }),
  released("gzip that was not requested, with the decoded hash", coded("gzip", gzipSync(TEXT)), {
    conditions: { expect_sha256: sha256(TEXT), min_bytes: TEXT.length, expect_contains: "whole" },
    findings: ["expect_sha256 true match", "min_bytes true match", "expect_contains true match"],
  }),
  released("gzip that was not requested, with the received hash", coded("gzip", gzipSync(TEXT)), {
    conditions: { expect_sha256: sha256(gzipSync(TEXT)) },
    findings: ["expect_sha256 true match"],
  }),
  released("bare deflate", coded("deflate", deflateRawSync(TEXT)), {
    conditions: { expect_sha256: sha256(TEXT) },
    findings: ["expect_sha256 true match"],
  }),
  released("brotli", coded("BR", brotliCompressSync(TEXT)), {
    conditions: { expect_sha256: sha256(TEXT) },
    findings: ["expect_sha256 true match"],
  }),
  released("an unknown coding with the agreed received hash", coded("zstd", Buffer.from("zz")), {
    conditions: { expect_sha256: sha256("zz") },
    findings: ["expect_sha256 true match"],
  }),
  refunded("a 404", sends(404), { findings: [status("false", "mismatch")] }),
  refunded("a 400", sends(400), { findings: [status("false", "mismatch")], v2: REFUSED }),
  refunded("a 404 whose body never ends", endless({}, Buffer.alloc(100)).bind(null), {
    conditions: { expect_status: 404 },
    findings: [status("false", "mismatch")],
  }),
  refunded("another 2xx than agreed", sends(204), {
    conditions: { expect_status: 200 },
    findings: [status("false", "mismatch")],
  }),
  refunded("a 200 where a 404 was agreed", sends(200, {}, TEXT), {
    conditions: { expect_status: 404, expect_contains: "whole" },
    findings: [status("false", "mismatch"), "expect_contains unknown no_body"],
  }),
  refunded("another hash", sends(200, {}, TEXT), {
    conditions: { expect_sha256: sha256("else") },
    findings: [status("true", "match"), "expect_sha256 false mismatch"],
  }),
  refunded("another hash in either form", coded("gzip", gzipSync(TEXT)), {
    conditions: { expect_sha256: sha256("else") },
    findings: [status("true", "match"), "expect_sha256 false mismatch"],
  }),
  refunded("one byte too few", sends(200, {}, "1234"), {
    conditions: { min_bytes: 5 },
    findings: [status("true", "match"), "min_bytes false mismatch"],
  }),
  refunded("a body that is long enough only before decoding", coded("gzip", gzipSync("1234")), {
    conditions: { min_bytes: 5 },
    findings: [status("true", "match"), "min_bytes false mismatch"],
  }),
  refunded("another text", sends(200, {}, TEXT), {
    conditions: { expect_contains: "Whole" },
    findings: [status("true", "match"), "expect_contains false mismatch"],
  }),
  refunded("the agreed text in another encoding", sends(200, {}, Buffer.from("Grüße", "latin1")), {
    conditions: { expect_contains: "Grüße" },
    findings: [status("true", "match"), "expect_contains false mismatch"],
  }),
  refunded("a 204 where bytes were agreed", sends(204), {
    conditions: { min_bytes: 1 },
    findings: [status("true", "match"), "min_bytes false mismatch"],
  }),
  refunded("one false and one unknown condition", coded("zstd", Buffer.from("zz")), {
    conditions: { expect_status: 201, expect_contains: "z" },
    findings: [status("false", "mismatch"), "expect_contains unknown no_body"],
  }),
];

/** Server behavior that leaves the verdict open after two attempts. */
export const UNDECIDED: readonly Row[] = [
  ...[401, 402, 403, 407, 408, 425, 429, 451].map((code) =>
    escalated(`a ${code}`, sends(code), { findings: [status("unknown", "undecided_status")] }),
  ),
  ...[500, 599].map((code) => escalated(`a ${code}`, sends(code), { findings: [status("unknown", "server_error")] })),
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
  escalated("a redirect to an invalid URL", to("http://[nonsense"), { findings: [status("unknown", "redirect")] }),
  escalated("a redirect to another scheme", to("ftp://shop.example/"), { findings: [status("unknown", "blocked")] }),
  escalated("a redirect to a private address", to("http://10.0.0.1/"), { findings: [status("unknown", "blocked")] }),
  escalated("a redirect to an internal name", to("http://inside.example/"), {
    findings: [status("unknown", "blocked")],
  }),
  escalated("a redirect to the service", to("http://trust.example/"), { findings: [status("unknown", "blocked")] }),
  escalated("a truncated body", raw("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\nshort"), {
    findings: [status("unknown", "truncated")],
  }),
  escalated("truncated chunks", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n"), {
    findings: [status("unknown", "truncated")],
  }),
  escalated("a transfer coding that was not offered", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nxx"), {
    findings: [status("unknown", "bad_response")],
  }),
  escalated("no HTTP", raw("220 mail.example ESMTP\r\n"), { findings: [status("unknown", "bad_response")] }),
  escalated(
    "endless headers",
    ({ socket }) => {
      while (!socket.destroyed && socket.write(`x-more: ${"a".repeat(900)}\r\n`));
      socket.on("drain", () => socket.write("x: y\r\n"));
    },
    { findings: [status("unknown", "bad_response")] },
  ),
  escalated("a connection that is closed without a response", ({ socket }) => socket.destroy(), {
    findings: [status("unknown", "reset")],
  }),
  escalated("a declared length past the cap", sends(200, { "content-length": String(TOO_MUCH) }), {
    findings: [status("unknown", "too_large")],
  }),
  escalated("an endless body", endless({}, Buffer.alloc(65_536)), { findings: [status("unknown", "too_large")] }),
  escalated("a gzip bomb", coded("gzip", BOMB), { findings: [status("unknown", "too_large")] }),
  escalated("a bomb in a bomb", coded("gzip, gzip", gzipSync(BOMB)), {
    findings: [status("unknown", "too_large")],
  }),
  escalated(
    "a bomb with a small second stage",
    coded("gzip, gzip", gzipSync(gzipSync(Buffer.alloc(5_000_000)).subarray(0, 10).toString().padEnd(TOO_MUCH, "0"))),
    { findings: [status("unknown", "too_large")] },
  ),
  escalated("corrupt gzip", coded("gzip", Buffer.from("not gzip at all")), {
    conditions: { expect_contains: "gzip" },
    findings: [status("true", "match"), "expect_contains unknown not_decoded"],
  }),
  escalated("truncated gzip", coded("gzip", gzipSync(TEXT).subarray(0, 40)), {
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
  escalated("headers that never arrive", () => {}, { findings: [status("unknown", "timeout")] }),
  escalated("a very slow body", drips, { findings: [status("unknown", "timeout")] }),
  escalated("a stalled body", (_request, response) => response.writeHead(200).write("some"), {
    findings: [status("unknown", "timeout")],
  }),
];
