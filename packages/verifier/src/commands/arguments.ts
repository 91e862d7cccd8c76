import { type ParseArgsConfig, parseArgs } from "node:util";
import { InputError } from "../refusal.ts";

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
