import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { acceptsGzip } from "../../../api/log/static-routes.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { parseNote } from "../../../packages/verifier/src/tlog/note.ts";
import { entriesPath, levelWidth, type TileId, tilePath, tileWidth } from "../../../packages/verifier/src/tlog/tile.ts";
import { rootHash } from "../../../packages/verifier/src/tlog/tree.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { type StoredEntry, storeLog } from "../../support/log/stored-log.ts";
import { startService } from "../../support/service/service.ts";

const FIRST = 300;
const LAST = 256 * 1066;
const SIZE = LAST + 256 + 12;

const entry = (index: number): StoredEntry => ({
  type: "certificate",
  ref: `c${index}`,
  // The sizes differ, so that the length prefix uses both of its bytes.
  entry: Buffer.from(`entry ${index} ${"x".repeat((index * 37) % 700)}`),
});

// Only the first and the last entries of the log are stored.
const service = await forFile(startService({ chain: await forFile(startTestChain()), jobs: false }));
const log = await storeLog(service.database, "trust.test/log");
await log.grow(Array.from({ length: FIRST }, (_, index) => entry(index)));
/** The checkpoint of the first entries. */
const before = await (await fetch(`${service.url}/log/checkpoint`)).text();
log.pad(LAST - FIRST);
await log.grow(Array.from({ length: SIZE - LAST }, (_, index) => entry(LAST + index)));

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${service.url}/log/${path}`, { headers });

/** Sends with Node directly, so no client normalizes the path or decodes the body. */
const raw = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>((resolve, reject) => {
    const { hostname, port } = new URL(service.url);
    request({ hostname, port, path, headers, method }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
      );
    })
      .on("error", reject)
      .end();
  });

const readTiles = (ids: readonly TileId[]) =>
  Promise.all(
    ids.map(async (id) => {
      const answer = await get(tilePath(id));
      expect(answer.status, tilePath(id)).toBe(200);
      return new Uint8Array(await answer.arrayBuffer());
    }),
  );

describe("GET /log/checkpoint", () => {
  test("The checkpoint is a signed note with an ETag that caches keep for one second", async () => {
    const answer = await get("checkpoint");
    const note = await answer.text();
    expect(parseCheckpoint(parseNote(note).text)).toMatchObject({ origin: "trust.test/log", size: SIZE });
    expect(parseCheckpoint(parseNote(before).text).size).toBe(FIRST);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "public, max-age=1, stale-while-revalidate=2, stale-if-error=300",
      "access-control-allow-origin": "*",
    });
    const again = await get("checkpoint", { "if-none-match": answer.headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  test("The checkpoint's root matches its tiles", async () => {
    const { root, size } = parseCheckpoint(parseNote(await (await get("checkpoint")).text()).text);
    expect(Buffer.from(await rootHash(size, readTiles)).equals(root)).toBe(true);
    const old = parseCheckpoint(parseNote(before).text);
    expect(Buffer.from(await rootHash(old.size, readTiles)).equals(old.root)).toBe(true);
  });
});

describe("GET /log/tile", () => {
  test("A tile is immutable, has a Content-Length, and is never compressed", async () => {
    const answer = await raw("/log/tile/0/x001/066", { "accept-encoding": "gzip, identity" });
    expect(answer.headers).toMatchObject({
      "content-type": "application/octet-stream",
      "cache-control": "public, max-age=31536000, immutable",
      "content-length": "8192",
      "access-control-allow-origin": "*",
    });
    expect(answer.headers["content-encoding"]).toBeUndefined();
    const first = 256 * 1066;
    expect(answer.body.subarray(0, 32)).toEqual(Buffer.from(leafHash(entry(first).entry)));
  });

  test.each(["tile/0/x001/067.p/12", "tile/0/x001/067.p/1", "tile/0/001.p/44", "tile/2/000.p/4"])(
    "A tile exists up to the newest checkpoint: %s",
    async (path) => {
      const answer = await get(path);
      expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([
        200,
        32 * Number(path.split("/").at(-1)),
      ]);
    },
  );

  test.each([
    "tile/0/x001/067",
    "tile/0/x001/067.p/13",
    "tile/0/x001/068.p/1",
    "tile/1/004.p/44",
    "tile/2/000.p/5",
    "tile/entries/x001/067.p/13",
    "tile/entries/x001/068",
  ])("A tile beyond the newest checkpoint is a 404: %s", async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([404, "no-store"]);
    expect(((await answer.json()) as { detail: string }).detail).toContain("does not cover this tile");
  });
});

test.each(["checkpoint", "tile/0/000", "tile/entries/000"])(
  "%s supports HEAD, ETags, and range requests as HTTP requires",
  async (path) => {
    const plain = await raw(`/log/${path}`);
    const tag = String(plain.headers.etag);
    const kept = ["content-length", "content-type", "cache-control", "etag", "vary"];
    const head = await raw(`/log/${path}`, {}, "HEAD");
    expect([head.status, head.body.length]).toEqual([200, 0]);
    for (const name of kept) expect([name, head.headers[name]]).toEqual([name, plain.headers[name]]);
    for (const held of [tag, `W/${tag}`, `"other", ${tag}`, "*"]) {
      const answer = await raw(`/log/${path}`, { "if-none-match": held });
      expect([held, answer.status, answer.body.length, answer.headers.etag]).toEqual([held, 304, 0, tag]);
      expect(answer.headers["cache-control"]).toBe(plain.headers["cache-control"]);
    }
    for (const other of ['"other"', tag.slice(1, -1), ""])
      expect([other, (await raw(`/log/${path}`, { "if-none-match": other })).status]).toEqual([other, 200]);
    // A server may ignore a range and send the whole body.
    const ranged = await raw(`/log/${path}`, { range: "bytes=0-31" });
    expect([ranged.status, ranged.body.equals(plain.body)]).toEqual([200, true]);
  },
);

describe("GET /log/tile/entries", () => {
  const lengthPrefixed = (from: number, width: number) =>
    Buffer.concat(
      Array.from({ length: width }, (_, place) => {
        const bytes = entry(from + place).entry;
        return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
      }),
    );

  test.each([
    [0, 256],
    [1066, 256],
    [1067, 12],
    [1067, 1],
    [1, 44],
  ])("Bundle %i with %i entries has their bytes, each after its length", async (n, width) => {
    const path = `/log/${entriesPath(n, width)}`;
    const { body, headers } = await raw(path);
    expect(headers).toMatchObject({ "content-length": String(body.length), vary: "Accept-Encoding" });
    expect(body.equals(lengthPrefixed(n * 256, width))).toBe(true);
  });

  test("A bundle is compressed only for clients that accept gzip, with a separate ETag", async () => {
    const path = `/log/${entriesPath(1066)}`;
    const [plain, coded] = await Promise.all([raw(path), raw(path, { "accept-encoding": "gzip, identity" })]);
    expect([plain.headers["content-encoding"], coded.headers["content-encoding"]]).toEqual([undefined, "gzip"]);
    expect(coded.body.length).toBeLessThan(plain.body.length / 2);
    expect(gunzipSync(coded.body).equals(plain.body)).toBe(true);
    expect(coded.headers).toMatchObject({ vary: "Accept-Encoding", "content-length": String(coded.body.length) });
    expect(coded.headers.etag).not.toBe(plain.headers.etag);
    const held = { "if-none-match": String(coded.headers.etag) };
    expect((await raw(path, { ...held, "accept-encoding": "gzip" })).status).toBe(304);
    expect((await raw(path, held)).status).toBe(200);
    for (const refused of ["identity", "gzip;q=0", "gzip; q=0.000", "br", "identity, *;q=0", "identity;q=0"])
      expect((await raw(path, { "accept-encoding": refused })).headers["content-encoding"], refused).toBeUndefined();
  });

  test("The entries of a bundle hash to its tile", async () => {
    const [tile] = await readTiles([{ level: 0, n: 1066, width: tileWidth(SIZE, 0, 1066) }]);
    const leaves = Array.from({ length: 256 }, (_, place) => leafHash(entry(1066 * 256 + place).entry));
    expect(Buffer.concat(leaves).equals(tile ?? Buffer.alloc(0))).toBe(true);
    expect(levelWidth(SIZE, 2)).toBe(4);
  });
});

test.each<[string | undefined, boolean]>([
  [undefined, false],
  ["gzip", true],
  ["GZIP;Q=0.5", true],
  ["br, *", true],
  ["*;q=0", false],
  ["*, gzip;q=0", false],
  ["gzipped", false],
  ["identity;q=0, gzip;q=0.001", true],
  ["gzip ; q=0", false],
])("Accept-Encoding %j allows gzip: %s", (header, taken) => expect(acceptsGzip(header)).toBe(taken));

describe("path of a tile or checkpoint", () => {
  test.each([
    "/log/tile/0/x001/x066",
    "/log//tile/0/000",
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
