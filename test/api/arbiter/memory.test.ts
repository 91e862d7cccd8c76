import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type Handler, startSite } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";

const FLOOD = fileURLToPath(new URL("../../support/arbiter/flood.ts", import.meta.url));
const MIB = 2 ** 20;

/** An endless body that takes many seconds to reach the size limit. */
const slow: Handler = (_request, response) => {
  response.writeHead(200);
  const timer = setInterval(() => response.write(Buffer.alloc(32_768)), 20);
  response.on("close", () => clearInterval(timer));
};
const fast: Handler = (_request, response) => {
  response.writeHead(200);
  const more = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536)));
  };
  response.on("drain", more);
  more();
};
const bomb =
  (coding: string, bytes: Uint8Array): Handler =>
  (_request, response) =>
    response.writeHead(200, { "content-encoding": coding }).end(bytes);

const site = await forFile(startSite());
site.handlers.set("/slow", slow);
site.handlers.set("/fast", fast);
site.handlers.set("/gzip", bomb("gzip", gzipSync(Buffer.alloc(40 * MIB))));
site.handlers.set("/br", bomb("br", brotliCompressSync(Buffer.alloc(40 * MIB))));

describe("memory", () => {
  // 64 buffered bodies of the maximum size would take 640 MiB. A brotli window alone may take 16 MiB (RFC 7932, section
  // 9.1).
  test.concurrent.each([
    ["sent slowly", ["/slow"], 1_500, ["timeout"], 160],
    [
      "sent fast, with gzip and brotli bombs among them",
      ["/fast", "/gzip", "/br"],
      6_000,
      ["too_large", "timeout"],
      300,
    ],
  ] as const)(
    "64 concurrent endless bodies, %s, are not buffered",
    async (...[_is, paths, deadlineMs, expected, mostMiB]) => {
      const origin = `http://127.0.0.1:${site.port}`;
      const { stdout } = await promisify(execFile)(process.execPath, [FLOOD, origin, String(deadlineMs), ...paths]);
      const { grownMiB, failures } = JSON.parse(stdout) as { grownMiB: number; failures: string[] };
      expect(failures).toContain(expected[0]);
      expect(expected).toEqual(expect.arrayContaining(failures));
      expect(grownMiB).toBeLessThan(mostMiB);
    },
  );
});
