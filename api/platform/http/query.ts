import { z } from "zod";
import { Problem } from "./errors.ts";
import type { Route } from "./route.ts";

/**
 * Refuses a request that gives one of its route's query parameters more than once, or one of a fixed list with a value that
 * is not in the list. Readers of a query take its first value or its last one, so a proxy or a cache could see another
 * question than the one that is answered. Parameters that the route does not declare are ignored.
 */
export function checkQuery(url: string, { parameters = [] }: Pick<Route, "parameters">): void {
  const start = url.indexOf("?");
  if (start < 0) return;
  const query = new URLSearchParams(url.slice(start));
  for (const { name, in: place, schema } of parameters) {
    const [value, ...more] = place === "query" ? query.getAll(name) : [];
    if (more.length > 0) throw malformed(`The query parameter ${name} appears more than once; give it once.`);
    if (value !== undefined && schema instanceof z.ZodEnum && !schema.options.includes(value))
      throw malformed(`The query parameter ${name} must be one of ${EITHER.format(schema.options.map(String))}.`);
  }
}

const EITHER = new Intl.ListFormat("en-US", { type: "disjunction" });
const malformed = (detail: string) => new Problem("malformed_request", { detail });
