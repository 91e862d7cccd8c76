import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { fetchText } from "../fetch-text.ts";
import { InputError, quote } from "../refusal.ts";

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** Returns the bytes of a file, an address, or standard input (`-`). @throws InputError if it cannot be read */
export async function readSource(source: string): Promise<Uint8Array> {
  if (isUrl(source) && URL.canParse(source)) return fetchText(source);
  try {
    return source === "-" ? await buffer(process.stdin) : await readFile(source);
  } catch (error) {
    throw new InputError(`${quote(source)} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}
