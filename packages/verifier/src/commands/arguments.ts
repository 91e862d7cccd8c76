import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { fetchText } from "../fetch-text.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { httpLog, type LogFiles, logFiles } from "../tlog/log-files.ts";
import { type Policy, parsePolicy } from "../tlog/policy.ts";

/** An option with a value, and one without. */
export const TEXT = { type: "string" } as const;
export const FLAG = { type: "boolean" } as const;

/**
 * Reads the arguments of a subcommand: one source, and options. If an option with a single value is repeated, the last
 * value wins.
 * @throws InputError, with the usage, for an unknown option or any number of sources other than one
 */
export function readArguments<Options extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  usage: string,
  options: Options,
) {
  const { values, positionals } = parse(args, usage, options);
  const [source, ...more] = positionals;
  if (source === undefined || more.length > 0)
    throw new InputError(`Expected one file, URL, or - for standard input; got ${positionals.length}.\n\n${usage}`);
  return Object.assign(values, { source });
}

function parse<Options extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  usage: string,
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new InputError(`${(error as Error).message}\n\n${usage}`);
  }
}

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

/**
 * Runs work that needs viem: hashing typed data and recovering signers. Checking signed documents does not need it.
 * @throws InputError if viem is not installed
 */
export async function withViem<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new InputError("This check requires the viem package: npm install viem.");
  }
}

/**
 * Returns a count with its noun: 1 entry, 2 entries. @param one the singular; the plural adds an s unless it is given
 */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
