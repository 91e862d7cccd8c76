import { fetchText, StatusError } from "../fetch-text.ts";
import { InputError, quote } from "../refusal.ts";
import { AbsentError } from "./follow.ts";
import { HASH_SIZE } from "./hash.ts";
import { entriesPath, MAX_ENTRY_BYTES, parseBundle, type ReadTiles, TILE_WIDTH, tilePath } from "./tile.ts";

/** A log's public files (C2SP tlog-tiles). */
export interface LogFiles {
  /** Returns the newest signed checkpoint. */
  checkpoint(): Promise<Uint8Array>;
  readonly tiles: ReadTiles;
  /** Returns the first `width` entries of a bundle. */
  entries(n: number, width: number): Promise<readonly Uint8Array[]>;
}

/** The timeout per file. */
const TIMEOUT_MS = 30_000;
const MAX_CHECKPOINT = 1_000_000;
/** 256 entries of the largest size, each after its length in two bytes. */
const MAX_BUNDLE = TILE_WIDTH * (2 + MAX_ENTRY_BYTES);
const AT_ONCE = 8;

/**
 * Returns the files of a log at an address.
 * @param timeoutMs the current timeout per file; throws when no time is left
 */
export function httpLog(address: string, timeoutMs: () => number | undefined = () => undefined): LogFiles {
  const base = address.replace(/\/+$/, "");
  return logFiles((path, maxBytes) =>
    fetchText(`${base}/${path}`, { maxBytes, timeoutMs: timeoutMs() ?? TIMEOUT_MS, accept: "*/*" }),
  );
}

/**
 * Returns the current URL of a document that is too large for the log: its path on the host that the log is read from.
 * The service may have moved since it was logged; digest and signature are checked in any case.
 * @throws InputError for an invalid URL
 */
export function documentUrl(url: string, host: string): string {
  if (!URL.canParse(url)) throw new InputError(`${quote(url)} is not the URL of a document`);
  const { pathname, search } = new URL(url);
  return `${new URL(host).origin}${pathname}${search}`;
}

/** @param read reads a file of at most `maxBytes` bytes */
export function logFiles(read: (path: string, maxBytes: number) => Promise<Uint8Array>): LogFiles {
  /** A partial file may be gone once the full one exists, which begins with it. */
  const readPart = async (path: (width: number) => string, width: number, maxBytes: number) => {
    try {
      return await read(path(width), maxBytes);
    } catch (error) {
      if (width === TILE_WIDTH || !isAbsent(error)) throw unreadable(error, path(width));
    }
    return read(path(TILE_WIDTH), maxBytes).catch((error: unknown) => {
      throw unreadable(error, path(width));
    });
  };
  return {
    checkpoint: () =>
      read("checkpoint", MAX_CHECKPOINT).catch((error: unknown) => {
        throw unreadable(error, "checkpoint");
      }),
    async tiles(ids) {
      const found: Uint8Array[] = [];
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        const some = ids.slice(at, at + AT_ONCE).map(async ({ level, n, width }) => {
          const bytes = await readPart((w) => tilePath({ level, n, width: w }), width, TILE_WIDTH * HASH_SIZE);
          return wholeTile(bytes, width, tilePath({ level, n, width }));
        });
        found.push(...(await Promise.all(some)));
      }
      return found;
    },
    entries: async (n, width) =>
      wholeBundle(await readPart((w) => entriesPath(n, w), width, MAX_BUNDLE), width, entriesPath(n, width)),
  };
}

function wholeTile(bytes: Uint8Array, width: number, path: string): Uint8Array {
  if (bytes.length === width * HASH_SIZE || bytes.length === TILE_WIDTH * HASH_SIZE)
    return bytes.subarray(0, width * HASH_SIZE);
  throw new InputError(`${path} has ${bytes.length} bytes, expected ${width * HASH_SIZE}`);
}

function wholeBundle(bytes: Uint8Array, width: number, path: string): readonly Uint8Array[] {
  const entries = parseBundle(bytes);
  if (entries !== null && (entries.length === width || entries.length === TILE_WIDTH)) return entries.slice(0, width);
  throw new InputError(`${path} is not a bundle of ${width} entries`);
}

const isAbsent = (error: unknown): boolean =>
  error instanceof StatusError ? error.status === 404 || error.status === 410 : codeOf(error) === "ENOENT";

const codeOf = (error: unknown): string | undefined => (error as { readonly code?: string }).code;

function unreadable(error: unknown, path: string): unknown {
  if (isAbsent(error)) return new AbsentError(`${path} does not exist`);
  return codeOf(error) === undefined ? error : new InputError(`${path} cannot be read: ${codeOf(error)}`);
}
