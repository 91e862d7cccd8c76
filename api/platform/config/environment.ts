import { z } from "zod";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The variables that are set, what the schema makes of them, and a line for each one that is missing or wrong, with what is
 * expected. An empty variable counts as missing.
 */
export function readEnvironment<S extends z.ZodObject>(schema: S, environment: Environment) {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const { data, error } = schema.safeParse(given);
  const expectedOf = (name: string) => z.safeParse(schema.shape[name], "").error?.issues[0]?.message;
  const lines = (error?.issues ?? []).map(({ path: [key], message }) => {
    const name = String(key);
    return given[name] === undefined ? `${name} is missing: ${expectedOf(name)}` : `${name} is wrong: ${message}`;
  });
  return { given, data, problems: [...new Set(lines)] };
}
