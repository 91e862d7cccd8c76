import { createHash } from "node:crypto";
import { type Readable, type Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { Failed } from "./dial.ts";
import type { FetchLimits, FetchRequest, Measure, MeasuredBody } from "./request.ts";

/** Counts and hashes the bytes that pass through; throws if they exceed the cap. */
function createMeter({ maxBodyBytes }: FetchLimits) {
  const hash = createHash("sha256");
  let bytes = 0;
  return {
    add(chunk: Uint8Array) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) throw new Failed("too_large");
      hash.update(chunk);
    },
    measure: (): Measure => ({ bytes, sha256: hash.digest("hex") }),
  };
}

/** Searches a stream for a text's UTF-8 bytes, keeping a tail of the earlier chunks that is one byte shorter. */
export function createSearch(text: string) {
  const needle = Buffer.from(text);
  let tail = Buffer.alloc(0);
  let found = false;
  return {
    add(chunk: Uint8Array) {
      if (found) return;
      // A match across the boundary lies in the kept tail and the start of the chunk.
      const border = Buffer.concat([tail, chunk.subarray(0, needle.length - 1)]);
      found = border.includes(needle) || Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).includes(needle);
      const kept = chunk.length >= needle.length ? chunk : Buffer.concat([tail, chunk]);
      tail = Buffer.from(kept.subarray(Math.max(0, kept.length - needle.length + 1)));
    },
    found: () => found,
  };
}

/**
 * Inflates the zlib format, which is `deflate` (RFC 9110, section 8.4.1.2). Some servers send it raw, which the first
 * two bytes show (RFC 1950).
 */
function inflateFor(first: Uint8Array): Transform {
  const [cmf = 0, flags = 0] = first;
  return (cmf & 0x0f) === 8 && (cmf * 256 + flags) % 31 === 0 ? createInflate() : createInflateRaw();
}

const DECODERS: Readonly<Record<string, (first: Uint8Array) => Transform>> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  br: () => createBrotliDecompress(),
  deflate: inflateFor,
};

/**
 * Returns the codings of `Content-Encoding` in the order they were applied; null if one is unknown or there are too
 * many.
 */
function codingsOf(header: string | null, { maxCodings }: FetchLimits): readonly string[] | null {
  const names = (header ?? "").split(",").map((name) => name.trim().toLowerCase());
  const codings = names.filter((name) => name !== "" && name !== "identity");
  return codings.length <= maxCodings && codings.every((name) => Object.hasOwn(DECODERS, name)) ? codings : null;
}

/** Accepts bytes until it fails. */
interface Sink {
  write(chunk: Uint8Array): Promise<void>;
  /** Whether everything could be decoded. */
  end(): Promise<boolean>;
  destroy(): void;
}

const PLAIN = (add: (chunk: Uint8Array) => void): Sink => ({
  write: async (chunk) => add(chunk),
  end: async () => true,
  destroy: () => {},
});

/** Creates a decoder's output, which passes bytes to the next sink under the same size cap as every stage. */
function outputTo(next: Sink, { maxBodyBytes }: FetchLimits): Writable {
  let passed = 0;
  return new Writable({
    write(chunk: Uint8Array, _encoding, callback) {
      passed += chunk.length;
      const work = passed > maxBodyBytes ? Promise.reject(new Failed("too_large")) : next.write(chunk);
      work.then(() => callback(), callback);
    },
  });
}

/** Starts a decoder. `done` resolves to the reason why it stopped early, or null. */
function startDecoder(coding: string, first: Uint8Array, output: Writable) {
  const decoder = (DECODERS[coding] as (typeof DECODERS)[string])(first);
  const running = { decoder, failure: null as unknown, done: Promise.resolve() };
  running.done = pipeline(decoder, output).catch((cause: unknown) => {
    running.failure = cause;
  });
  return running;
}

/**
 * Undoes one coding. On corrupt data it records the fact and ignores the rest, because the received form still counts.
 */
function decodingSink(coding: string, next: Sink, limits: FetchLimits): Sink {
  let running: ReturnType<typeof startDecoder> | null = null;
  // Holds data back until it has the two bytes that distinguish the forms of deflate.
  let held: Uint8Array = Buffer.alloc(0);
  const orThrow = () => {
    if (running?.failure instanceof Failed) throw running.failure;
  };
  const feed = async (chunk: Uint8Array) => {
    running ??= startDecoder(coding, chunk, outputTo(next, limits));
    const { decoder, failure, done } = running;
    if (failure === null) await Promise.race([new Promise((resolve) => decoder.write(chunk, resolve)), done]);
    orThrow();
  };
  return {
    async write(chunk) {
      if (running !== null) return feed(chunk);
      held = Buffer.concat([held, chunk]);
      if (held.length >= 2) await feed(held);
    },
    async end() {
      if (running === null && held.length > 0) await feed(held);
      running?.decoder.end();
      await running?.done;
      orThrow();
      return (await next.end()) && (running === null || running.failure === null);
    },
    destroy() {
      running?.decoder.destroy();
      next.destroy();
    },
  };
}

export interface BodyRequest extends Pick<FetchRequest, "contains" | "keep" | "limits"> {
  /** The header; null if absent. */
  readonly contentEncoding: string | null;
}

/**
 * Reads a body to its end, both as received and decoded, and keeps it only if requested.
 * @throws Failed `too_large`, or the error of the body's stream
 */
export async function measureBody(
  body: Readable,
  { contentEncoding, contains, keep, limits }: BodyRequest,
): Promise<MeasuredBody> {
  const received = createMeter(limits);
  const kept: Uint8Array[] = [];
  const search = contains === null ? null : createSearch(contains);
  const codings = codingsOf(contentEncoding, limits);
  // Without codings, both forms are the same and hashed once.
  const decoded = codings?.length === 0 ? null : createMeter(limits);
  const plain = PLAIN((chunk) => {
    decoded?.add(chunk);
    search?.add(chunk);
    // A decoder may reuse its chunk's memory.
    if (keep) kept.push(Uint8Array.from(chunk));
  });
  // Undo the last coding first.
  const sink = codings?.reduce((next, coding) => decodingSink(coding, next, limits), plain) ?? null;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      received.add(chunk);
      await sink?.write(chunk);
    }
    const isWhole = (await sink?.end()) ?? false;
    const measure = received.measure();
    const found = search?.found() ?? null;
    const content = keep ? { content: Buffer.concat(kept) } : {};
    return {
      received: measure,
      decoded: isWhole ? { ...(decoded?.measure() ?? measure), contains: found, ...content } : null,
    };
  } finally {
    sink?.destroy();
  }
}
