import { readFileSync } from "node:fs";
import { z } from "zod";
import { url } from "./values.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the variables that are set, the schema's result, and a line for each missing or wrong variable with the
 * expected value. An empty variable counts as missing. Each may also come from a file, as in `withFiles`.
 */
export function readEnvironment<S extends z.ZodObject>(schema: S, environment: Environment) {
  const read = withFiles(Object.keys(schema.shape), environment);
  const given = Object.fromEntries(Object.entries(read.environment).filter(([, value]) => value !== ""));
  const { data, error } = schema.safeParse(given);
  const expectedOf = (name: string) => z.safeParse(schema.shape[name], "").error?.issues[0]?.message;
  const lines = (error?.issues ?? []).flatMap(({ path: [key], message }) => {
    const name = String(key);
    if (given[name] !== undefined) return [`${name} is wrong: ${message}`];
    return read.unread.has(name) ? [] : [`${name} is missing: ${expectedOf(name)}`];
  });
  return {
    given,
    data: read.unread.size > 0 ? undefined : data,
    problems: [...read.unread.values(), ...new Set(lines)],
  };
}

/** Returns PostgreSQL's URL for a command that needs no other setting, or what is wrong with it. */
export function readDatabaseUrl(expected: string, environment: Environment): { url: string } | { problem: string } {
  const schema = z.object({ DATABASE_URL: url(expected, ["postgres:", "postgresql:"]) });
  const { data, problems } = readEnvironment(schema, environment);
  return data === undefined ? { problem: problems.join("\n") } : { url: data.DATABASE_URL };
}

/**
 * Returns the environment in which each of these variables, if `NAME_FILE` is set instead, has the content of that file
 * without its final newline. Secrets thus stay out of process lists and crash reports. `unread` has a line for each
 * file that cannot be used, by the name of its variable.
 */
export function withFiles(names: readonly string[], environment: Environment) {
  const unread = new Map<string, string>();
  const contents: Record<string, string> = {};
  for (const name of names) {
    const path = environment[`${name}_FILE`];
    if (!path) continue;
    const content = environment[name] ? { problem: `${name} is set too; expected only one of them` } : contentOf(path);
    if (typeof content === "string") contents[name] = content;
    else unread.set(name, `${name}_FILE is wrong: ${content.problem}`);
  }
  return { environment: { ...environment, ...contents }, unread };
}

function contentOf(path: string): string | { readonly problem: string } {
  try {
    const content = readFileSync(path, "utf8").replace(/\r?\n$/, "");
    return content === "" ? { problem: `${path} is empty` } : content;
  } catch (error) {
    return { problem: `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})` };
  }
}
