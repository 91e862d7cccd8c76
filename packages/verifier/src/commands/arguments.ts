import { parseArgs } from "node:util";
import { InputError } from "../refusal.ts";

/** The options that a subcommand accepts, by name and without the dashes. */
export interface Accepted<Text extends string, Flag extends string, List extends string> {
  /** Printed with every usage error. */
  readonly usage: string;
  /** Options that take a value. */
  readonly texts?: readonly Text[];
  /** Options without a value. */
  readonly flags?: readonly Flag[];
  /** Options that take a value and may be repeated. */
  readonly lists?: readonly List[];
}

/** The source, each value that was given, each flag, and all values of each list. */
export type Arguments<Text extends string, Flag extends string, List extends string> = {
  readonly source: string;
} & { readonly [text in Text]: string | undefined } & { readonly [flag in Flag]: boolean } & {
  readonly [list in List]: readonly string[];
};

/**
 * Reads the arguments of a subcommand: one source, and options. If an option with a single value is repeated, the last
 * value wins.
 * @throws InputError, with the usage, for an unknown option or any number of sources other than one
 */
export function readArguments<Text extends string = never, Flag extends string = never, List extends string = never>(
  args: readonly string[],
  { usage, texts = [], flags = [], lists = [] }: Accepted<Text, Flag, List>,
): Arguments<Text, Flag, List> {
  const options = {
    ...Object.fromEntries(texts.map((name) => [name, { type: "string" } as const])),
    ...Object.fromEntries(flags.map((name) => [name, { type: "boolean" } as const])),
    ...Object.fromEntries(lists.map((name) => [name, { type: "string", multiple: true } as const])),
  };
  const { values, positionals } = parse(args, options, usage);
  const [source, ...more] = positionals;
  if (source === undefined || more.length > 0)
    throw new InputError(`Expected one file, URL, or - for standard input; got ${positionals.length}.\n\n${usage}`);
  const given: Readonly<Record<string, unknown>> = values;
  return {
    source,
    ...Object.fromEntries(texts.map((name) => [name, given[name]])),
    ...Object.fromEntries(flags.map((name) => [name, given[name] === true])),
    ...Object.fromEntries(lists.map((name) => [name, given[name] ?? []])),
  } as Arguments<Text, Flag, List>;
}

function parse(
  args: readonly string[],
  options: NonNullable<Parameters<typeof parseArgs>[0]>["options"],
  usage: string,
) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: options ?? {} });
  } catch (error) {
    throw new InputError(`${(error as Error).message}\n\n${usage}`);
  }
}
