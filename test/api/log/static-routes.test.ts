import { createHash } from "node:crypto";
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

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, jobs: false }));
const log = await storeLog(service.database, "trust.test/log");

const entry = (index: number): StoredEntry => ({
  type: "certificate",
  ref: `c${index}`,
  // From empty-looking to long: the length prefix has two bytes.
  entry: Buffer.from(`entry ${index} ${"x".repeat((index * 37) % 700)}`),
});
const FIRST = 300;
const LAST = 256 * 1066;
const SIZE = LAST + 256 + 12;
await log.grow(Array.from({ length: FIRST }, (_, index) => entry(index)));
const before = await (await fetch(`${service.url}/log/checkpoint`)).text();
log.pad(LAST - FIRST);
await log.grow(Array.from({ length: SIZE - LAST }, (_, index) => entry(LAST + index)));

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${service.url}/log/${path}`, { headers });

/** As Node sends it: no client in between normalizes the path, or reads an encoding. */
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

describe("the checkpoint", () => {
  test("is a signed note that caches keep for a second, with a tag", async () => {
    const answer = await get("checkpoint");
    const note = await answer.text();
    expect(parseCheckpoint(parseNote(note).text)).toMatchObject({ origin: "trust.test/log", size: SIZE });
    expect(parseCheckpoint(parseNote(before).text).size).toBe(FIRST);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "public, max-age=1",
      "access-control-allow-origin": "*",
    });
    const again = await get("checkpoint", { "if-none-match": answer.headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  test("has the root that its tiles make", async () => {
    const { root, size } = parseCheckpoint(parseNote(await (await get("checkpoint")).text()).text);
    expect(Buffer.from(await rootHash(size, readTiles)).equals(root)).toBe(true);
    const old = parseCheckpoint(parseNote(before).text);
    expect(Buffer.from(await rootHash(old.size, readTiles)).equals(old.root)).toBe(true);
  });
});

describe("a tile", () => {
  test("is kept for good, is as long as it says, and is never coded", async () => {
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

  test("answers HEAD like GET without a body, and 304 to its tag", async () => {
    const full = await raw("/log/tile/1/004.p/43");
    expect([full.status, full.body.length]).toEqual([200, 43 * 32]);
    const head = await raw("/log/tile/1/004.p/43", {}, "HEAD");
    expect([head.status, head.body.length, head.headers["content-length"]]).toEqual([200, 0, String(43 * 32)]);
    expect(head.headers.etag).toBe(full.headers.etag);
    const held = await raw("/log/tile/1/004.p/43", { "if-none-match": String(full.headers.etag) });
    expect([held.status, held.body.length, held.headers["cache-control"]]).toEqual([
      304,
      0,
      "public, max-age=31536000, immutable",
    ]);
  });

  test.each(["tile/0/x001/067.p/12", "tile/0/x001/067.p/1", "tile/0/001.p/44", "tile/2/000.p/4"])(
    "is there as far as the newest checkpoint reaches: %s",
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
    "tile/1/004",
    "tile/2/000.p/5",
    "tile/3/000.p/1",
    "tile/63/000",
    "tile/entries/x001/067.p/13",
    "tile/entries/x001/068",
  ])("is not there beyond the newest checkpoint: %s", async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([404, "no-store"]);
    expect(((await answer.json()) as { detail: string }).detail).toContain("does not reach this tile");
  });
});

describe("only the canonical path", () => {
  test.each([
    "/log/tile/00/000",
    "/log/tile/64/000",
    "/log/tile/-1/000",
    "/log/tile/0/0",
    "/log/tile/0/00",
    "/log/tile/0/0000",
    "/log/tile/0/x000/000",
    "/log/tile/0/001/067",
    "/log/tile/0/1067",
    "/log/tile/0/x001/x066",
    "/log/tile/0/X001/066",
    "/log/tile/0/000/",
    "/log/tile/0//000",
    "/log//tile/0/000",
    "/log/tile/0/000.p",
    "/log/tile/0/000.p/",
    "/log/tile/0/000.p/0",
    "/log/tile/0/000.p/01",
    "/log/tile/0/000.p/256",
    "/log/tile/0/000.p/1/",
    "/log/tile/0/000.P/1",
    "/log/tile/0/%30%30%30",
    "/log/tile/0/00%30",
    "/log/tile/0/%2530%2530%2530",
    "/log/tile/0/000%00",
    "/log/tile/0/000%2Ep/1",
    "/log/tile/0/x001%2F066",
    "/log/tile/0/../0/000/x",
    "/log/tile/../../etc/passwd",
    "/log/tile/%2e%2e/%2e%2e/etc/passwd",
    "/log/tile/..%2f..%2fetc%2fpasswd",
    "/log/tile/0/\u0661",
    "/log/tile/0/x009/x007/x199/x254/x740/993",
    "/log/tile/0/x999/x999/x999/x999/x999/x999/999",
    `/log/tile/0/${"x001/".repeat(300)}000`,
    "/log/tile/data/000",
    "/log/tile/entries/",
    "/log/tile/entries",
    "/log/tile/",
    "/log/tile",
    "/log/",
    "/log/1/checkpoint",
    "/log/01/tile/0/000",
    "/log/2/checkpoint",
    "/log/checkpoint/",
    "/log/checkpoint%20",
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

  test("takes no other method, and says so to caches too", async () => {
    const answer = await fetch(`${service.url}/log/tile/0/000`, { method: "POST" });
    expect([answer.status, answer.headers.get("allow"), answer.headers.get("cache-control")]).toEqual([
      405,
      "GET, HEAD, OPTIONS",
      "no-store",
    ]);
  });
});

describe("a bundle of entries", () => {
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
  ])("number %i, %i wide, has the entries' bytes, each after its length", async (n, width) => {
    const path = `/log/${entriesPath(n, width)}`;
    const { body, headers } = await raw(path);
    expect(headers).toMatchObject({ "content-length": String(body.length), vary: "Accept-Encoding" });
    expect(body.equals(lengthPrefixed(n * 256, width))).toBe(true);
  });

  test("is coded for those who say so alone, under a tag of its own", async () => {
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
    for (const refused of ["identity", "gzip;q=0", "br", "identity, *;q=0"])
      expect((await raw(path, { "accept-encoding": refused })).headers["content-encoding"], refused).toBeUndefined();
  });

  test("hashes to its tile", async () => {
    const [tile] = await readTiles([{ level: 0, n: 1066, width: tileWidth(SIZE, 0, 1066) }]);
    const leaves = Array.from({ length: 256 }, (_, place) => leafHash(entry(1066 * 256 + place).entry));
    expect(Buffer.concat(leaves).equals(tile ?? Buffer.alloc(0))).toBe(true);
    expect(levelWidth(SIZE, 2)).toBe(4);
  });
});

test.each<[string | undefined, boolean]>([
  [undefined, false],
  ["", false],
  ["gzip", true],
  ["GZIP;Q=0.5", true],
  ["x-gzip", true],
  ["br, *", true],
  ["*;q=0", false],
  ["*, gzip;q=0", false],
  ["gzip;q=nonsense", false],
  ["gzipped", false],
])("Accept-Encoding %j takes gzip: %s", (header, taken) => expect(acceptsGzip(header)).toBe(taken));

test("a tag is that of the bytes", async () => {
  const { headers, body } = await raw("/log/tile/0/000");
  expect(headers.etag).toBe(`"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`);
});
