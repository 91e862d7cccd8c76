import { promisify } from "node:util";
import { brotliDecompress, constants, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import type { Delivery } from "./delivery.ts";

/** The most that is decoded, after each coding. */
export const MAX_DECODED_BYTES = 4 * 1024 * 1024;
const MAX_CODINGS = 2;
/** RFC 9659, section 3: what a decoder of the content coding `zstd` must support. */
const ZSTD_WINDOW_LOG = 23;

const capped = { maxOutputLength: MAX_DECODED_BYTES };

/**
 * `deflate` is the zlib format (RFC 9110, section 8.4.1.2). Some servers send it raw, which the first two bytes show.
 */
const inflateEither = (body: Uint8Array): Promise<Buffer> => {
  const [cmf = 0, flags = 0] = body;
  const isZlib = (cmf & 0x0f) === 8 && (cmf * 256 + flags) % 31 === 0;
  return promisify(isZlib ? inflate : inflateRaw)(body, capped) as Promise<Buffer>;
};

const gzip = (body: Uint8Array): Promise<Buffer> => promisify(gunzip)(body, capped) as Promise<Buffer>;

const DECODERS: ReadonlyMap<string, (body: Uint8Array) => Promise<Buffer>> = new Map([
  ["gzip", gzip],
  ["x-gzip", gzip],
  ["deflate", inflateEither],
  ["br", (body) => promisify(brotliDecompress)(body, capped) as Promise<Buffer>],
  [
    "zstd",
    (body) => {
      const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG };
      return promisify(zstdDecompress)(body, { ...capped, params }) as Promise<Buffer>;
    },
  ],
]);

/**
 * Returns a delivery's body without its content codings, or null if they cannot be undone: unknown, more than two,
 * corrupt data, or more than 4 MiB.
 */
export async function decodeContent({
  contentEncoding,
  body,
}: Pick<Delivery, "contentEncoding" | "body">): Promise<Uint8Array | null> {
  const names = (contentEncoding ?? "").split(",").map((name) => name.trim().toLowerCase());
  const codings = names.filter((name) => name !== "" && name !== "identity");
  if (codings.length === 0 || body.length === 0) return body;
  if (codings.length > MAX_CODINGS) return null;
  let content: Uint8Array = body;
  // The last coding was applied last.
  for (const coding of codings.reverse()) {
    const decoded = await DECODERS.get(coding)?.(content).catch(() => null);
    if (decoded === null || decoded === undefined) return null;
    content = decoded;
  }
  return content;
}
