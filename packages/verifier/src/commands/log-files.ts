import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { InputError, parseInput, quote } from "../refusal.ts";
import { httpLog, type LogFiles, logFiles } from "../tlog/log-files.ts";
import { type Policy, parsePolicy } from "../tlog/policy.ts";
import { isUrl, readSource } from "./source.ts";

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
