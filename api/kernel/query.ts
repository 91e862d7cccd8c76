import { Problem } from "./errors.ts";
import type { Route } from "./route.ts";

/**
 * Refuses a request that gives one of its route's query parameters more than once. Readers of a query take its first value
 * or its last one, so a proxy or a cache could see another question than the one that is answered. What the route does not
 * declare is nobody's question.
 */
export function refuseRepeated(url: string, { parameters = [] }: Pick<Route, "parameters">): void {
  const start = url.indexOf("?");
  if (start < 0) return;
  const query = new URLSearchParams(url.slice(start));
  const repeated = parameters.find(({ name, in: place }) => place === "query" && query.getAll(name).length > 1);
  if (repeated === undefined) return;
  throw new Problem("malformed_request", {
    detail: `The query parameter ${repeated.name} appears more than once; give it once.`,
  });
}
