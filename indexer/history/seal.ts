import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";

// A fetched file's seal: the SHA-256 of all its bytes, with zeros in place of the seal itself. DuckDB looks at no page's
// checksum, so a bit that flips on a disk may make other rows; and its own hashes may change with its version.

const DIGITS = 64;
const BLANK = "0".repeat(DIGITS);
/** What is written first, with the rows, as JSON among what the file says of itself. */
export const NO_SEAL = { transfers_seal: BLANK };
const MARK = '"transfers_seal":"';
/** What a Parquet file says of itself is at its end. */
const TAIL_BYTES = 4_096;

interface Found {
  readonly seal: string;
  /** Where in the file it begins. */
  readonly place: number;
}

async function findSeal(file: string): Promise<Found | null> {
  const handle = await open(file);
  try {
    const start = Math.max(0, (await handle.stat()).size - TAIL_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start);
    const tail = buffer.subarray(0, bytesRead).toString("latin1");
    const at = tail.lastIndexOf(MARK) + MARK.length;
    return at < MARK.length ? null : { seal: tail.slice(at, at + DIGITS), place: start + at };
  } finally {
    await handle.close();
  }
}

async function digestOf(file: string, place: number): Promise<string> {
  const hash = createHash("sha256");
  const add = async (part: { readonly start?: number; readonly end?: number }) => {
    for await (const bytes of createReadStream(file, { ...part, highWaterMark: 2 ** 20 })) hash.update(bytes);
  };
  await add({ end: place - 1 });
  hash.update(BLANK);
  await add({ start: place + DIGITS });
  return hash.digest("hex");
}

/** Puts the seal in place of the blank one. */
export async function sealFile(file: string): Promise<void> {
  const found = await findSeal(file);
  if (found?.seal !== BLANK) throw new Error(`${file} has no place for a seal`);
  const digest = await digestOf(file, found.place);
  const handle = await open(file, "r+");
  await handle.write(digest, found.place);
  await handle.close();
}

/** Whether a file is as it was sealed; null if it has no seal, like other people's files and those of earlier releases. */
export async function isIntact(file: string): Promise<boolean | null> {
  const found = await findSeal(file);
  return found === null ? null : found.seal === (await digestOf(file, found.place));
}
