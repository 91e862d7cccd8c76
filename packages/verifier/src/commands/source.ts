import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { fetchText } from "../fetch-text.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { httpLog, type LogFiles, logFiles } from "../tlog/log-files.ts";
import { type Policy, parsePolicy } from "../tlog/policy.ts";

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

/** @param place the log's address, or the folder with a copy of its files */
export function openLog(place: string, timeoutMs?: number): LogFiles {
  if (isUrl(place)) return httpLog(place, () => timeoutMs);
  return logFiles((path) => readFile(join(place, path)));
}

/** Reads a policy from a file or an address. @throws InputError if it is missing or malformed */
export async function readPolicy(source: string | undefined, usage: string): Promise<Policy> {
  if (source === undefined)
    throw new InputError(`Which log and which witnesses do you trust? Add --policy.\n\n${usage}`);
  const text = await readSource(source);
  return parseInput(
    () => parsePolicy(text),
    (reason) => `${quote(source)}: ${reason}`,
  );
}
