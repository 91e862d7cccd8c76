import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fetchText, StatusError } from "../fetch-text.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { MAX_ENTRY_BYTES, parseBundle } from "../tlog/bundle.ts";
import { AbsentError } from "../tlog/follow.ts";
import { HASH_SIZE } from "../tlog/hash.ts";
import { type Policy, parsePolicy } from "../tlog/policy.ts";
import { entriesPath, type ReadTiles, TILE_WIDTH, tilePath } from "../tlog/tile.ts";
import { isUrl, readSource } from "./source.ts";

/** A log's public files (C2SP tlog-tiles), behind an address or in a folder. */
export interface LogFiles {
  /** The newest signed checkpoint. */
  checkpoint(): Promise<Uint8Array>;
  readonly tiles: ReadTiles;
  /** The first `width` entries of a bundle. */
  entries(n: number, width: number): Promise<readonly Uint8Array[]>;
}

/** For one file. */
const TIMEOUT_MS = 30_000;
const MAX_CHECKPOINT = 1_000_000;
/** 256 entries of the largest size, each after two bytes with its length. */
const MAX_BUNDLE = TILE_WIDTH * (2 + MAX_ENTRY_BYTES);
const AT_ONCE = 8;

/** @param place the log's address, or the folder that has its files */
export function openLog(place: string, timeoutMs = TIMEOUT_MS): LogFiles {
  const base = place.replace(/\/+$/, "");
  const read = async (path: string, maxBytes: number): Promise<Uint8Array> =>
    isUrl(base) ? fetchText(`${base}/${path}`, { maxBytes, timeoutMs, accept: "*/*" }) : readFile(join(base, path));
  /** A partial file may be gone once its full one is there, which begins with it. */
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

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

function unreadable(error: unknown, path: string): unknown {
  if (isAbsent(error)) return new AbsentError(`${path} is not there`);
  return codeOf(error) === undefined ? error : new InputError(`${path} cannot be read: ${codeOf(error)}`);
}

/** The policy in a file. @throws InputError if there is none, or it is malformed */
export async function readPolicy(source: string | undefined, usage: string): Promise<Policy> {
  if (source === undefined)
    throw new InputError(`Which log and which witnesses do you trust? Add --policy.\n\n${usage}`);
  try {
    return parsePolicy(await readSource(source));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new InputError(`${quote(source)}: ${error.message}`);
  }
}
