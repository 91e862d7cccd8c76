import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import { z } from "zod";
import { formatBundle, parseTilePath, TILE_WIDTH } from "../../packages/verifier/src/tlog/tile.ts";
import { etagOf, inPath, isHeld, type Output } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { FreeRoute, Route } from "../platform/http/route.ts";
import { checkpointPath, logPath } from "./log-paths.ts";
import type { PublicLog } from "./prove-entries.ts";
import type { LogStore } from "./store.ts";

const BYTES: Output = { "application/octet-stream": null };
const FOR_GOOD = "public, max-age=31536000, immutable";
/** Long enough for a cache to help under load, short enough to get every checkpoint, and longer while the service is down. */
const FOR_A_MOMENT = "public, max-age=1, stale-while-revalidate=2, stale-if-error=300";
const compressed = promisify(gzip);

/** The static resources of C2SP tlog-tiles. Caches never store errors, because a missing resource may be added later. */
export function staticRoutes(generation: number, publicLog: PublicLog): readonly Route[] {
  const tiles = (path: string, summary: string): FreeRoute => ({
    method: "GET",
    path: `${logPath(generation)}/${path}/*`,
    summary,
    parameters: [inPath({ name: "path", description: PATH, schema: z.string() })],
    output: BYTES,
    others: { 304: {} },
    problems: ["not_found"],
    handle: (c) => resource(c, publicLog, generation),
  });
  return [
    {
      method: "GET",
      path: checkpointPath(generation),
      summary: "The log's newest witnessed checkpoint, a signed note (C2SP tlog-checkpoint)",
      output: { "text/plain": null },
      others: { 304: {} },
      problems: ["not_available"],
      handle: (c) => checkpoint(c, publicLog, generation),
    },
    tiles("tile/entries", "A bundle of 256 log entries, or part of one (C2SP tlog-tiles)"),
    tiles("tile", "A tile of 256 hashes of the log's tree, or part of one (C2SP tlog-tiles)"),
  ];
}

const PATH =
  "The level, then the number in groups of three digits, all but the last with an `x`, then `.p/` and the width if the tile is partial: `0/x001/067.p/12`. Slashes are not escaped.";

async function checkpoint(c: Context, { checkpoints }: PublicLog, generation: number): Promise<Response> {
  if (sentPath(c) !== checkpointPath(generation))
    throw new Problem("not_found", { detail: `The checkpoint is at ${checkpointPath(generation)}.` });
  const served = await checkpoints.served(generation);
  if (served === null)
    throw new Problem("not_available", {
      detail: "The log has no checkpoint yet. Retry in a second. If this persists, see GET /status.",
      headers: { "retry-after": "1" },
    });
  return sendText(c, served.note, FOR_A_MOMENT);
}

/** Sends a text with an ETag and this `Cache-Control`. */
export function sendText(c: Context, text: string, caching: string): Response {
  const headers = { etag: etagOf(text), "cache-control": caching };
  if (isHeld(c.req.header("if-none-match"), headers.etag)) return c.body(null, 304, headers);
  const length = String(Buffer.byteLength(text));
  return c.body(text, 200, { ...headers, "content-type": "text/plain; charset=utf-8", "content-length": length });
}

/**
 * Returns the path as it was sent. An escaped form is a different path, which caches would store separately. A URL parser
 * and a cache that merges slashes also resolve dots differently, so a cache could store one tile as another.
 */
function sentPath(c: Context): string {
  const target: string = c.env?.incoming?.url ?? new URL(c.req.url).pathname;
  return target.replace(/^https?:\/\/[^/?]*/i, "").replace(/\?.*$/s, "");
}

async function resource(c: Context, { resources }: PublicLog, generation: number): Promise<Response> {
  const prefix = `${logPath(generation)}/`;
  const sent = sentPath(c);
  const found = sent.startsWith(prefix)
    ? await resources.resource(generation, sent.slice(prefix.length))
    : "not_canonical";
  if (typeof found === "string") throw new Problem("not_found", { detail: ABSENT[found] });
  return found.kind === "tile" ? sendBytes(c, found.bytes) : sendBundle(c, found);
}

const ABSENT = {
  not_canonical:
    "This is not the path of a tile. A tile is at tile/<level>/<number>, and a bundle of entries at tile/entries/<number>. The number is in groups of three digits, all but the last with an x, as in x001/067. A partial tile ends in .p/<width>, from 1 to 255, without leading zeros.",
  beyond_the_tree:
    "The newest checkpoint of the log does not cover this tile, or not this width of it. Request the tiles of a checkpoint that you have verified.",
} as const;

const OCTETS = { "content-type": "application/octet-stream", "cache-control": FOR_GOOD } as const;

function sendBytes(c: Context, bytes: Uint8Array<ArrayBuffer>, more: Readonly<Record<string, string>> = {}): Response {
  const headers = { etag: etagOf(bytes), ...OCTETS, ...more };
  if (isHeld(c.req.header("if-none-match"), headers.etag)) return c.body(null, 304, headers);
  return c.body(bytes, 200, { ...headers, "content-length": String(bytes.length) });
}

/** Compresses the bundle for clients that accept gzip. */
async function sendBundle(c: Context, { bytes }: Resource): Promise<Response> {
  const vary = { vary: "Accept-Encoding" };
  if (!acceptsGzip(c.req.header("accept-encoding"))) return sendBytes(c, bytes, vary);
  const etag = etagOf(bytes, "-gzip");
  const coded = { ...vary, etag, "content-encoding": "gzip" };
  if (isHeld(c.req.header("if-none-match"), etag)) return c.body(null, 304, { ...OCTETS, ...vary, etag });
  return sendBytes(c, new Uint8Array(await compressed(bytes)), coded);
}

/** RFC 9110, section 12.5.3: gzip is listed, or covered by `*`, and its weight is not 0. */
export function acceptsGzip(header: string | undefined): boolean {
  const weights = new Map(
    (header ?? "").split(",").map((one) => {
      const [coding = "", ...parameters] = one.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
      return [coding, Number(weight)] as const;
    }),
  );
  return (weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0) > 0;
}

/** An immutable tile of hashes or bundle of entries. */
interface Resource {
  readonly kind: "tile" | "entries";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The reason that a path has no resource: a malformed path, or a tile beyond the end of the tree. */
type Absence = "not_canonical" | "beyond_the_tree";

export type StaticLog = ReturnType<typeof createStaticLog>;

/** Creates the log as static resources (C2SP tlog-tiles). A request takes at most three reads by primary key, and 256 entries. */
export function createStaticLog(store: LogStore) {
  // A tree only grows, so it still has every size that it once had.
  const reached = new Map<number, number>();
  const reaches = async (generation: number, size: number): Promise<boolean> => {
    if (size <= (reached.get(generation) ?? 0)) return true;
    // Every stored checkpoint may be public, because a witness sees it before readers do.
    const newest = (await store.newest(generation))?.size ?? 0;
    reached.set(generation, Math.max(newest, reached.get(generation) ?? 0));
    return size <= newest;
  };
  return {
    /** @param path the path after the log's prefix, as it was sent: `tile/0/x001/067.p/12` */
    async resource(generation: number, path: string): Promise<Resource | Absence> {
      const asked = parseTilePath(path);
      if (asked === null) return "not_canonical";
      const { n, width } = asked;
      const level = "level" in asked ? asked.level : 0;
      if (!(await reaches(generation, (n * TILE_WIDTH + width) * TILE_WIDTH ** level))) return "beyond_the_tree";
      if (!("level" in asked)) {
        const entries = await store.entries(generation, n * TILE_WIDTH, n * TILE_WIDTH + width);
        if (entries.length !== width) throw new Error(`log ${generation}: entries of ${path} are missing`);
        return { kind: "entries", bytes: formatBundle(entries) };
      }
      const [tile = []] = await store.tiles(generation, [{ level, n, width }]);
      return { kind: "tile", bytes: new Uint8Array(tile) };
    },
  };
}
