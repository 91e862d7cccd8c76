import type { Answer, Exchange } from "./exchange.ts";
import { readQuotes, record } from "./terms.ts";
import type { Resource, Visit } from "./visit.ts";

/** Another request of the same seller that may be for sale. */
export interface OtherRoute extends Pick<Resource, "url" | "method" | "body"> {
  /** The seller's document that shows it; absent if the order names it. */
  readonly shownBy?: string;
}

/** The maximum number of other routes to request quotes from. A payment is presented at one of them. */
const MOST_ROUTES = 2;
/** The number of requests reserved for the rest of an exam. */
const KEPT = 12;
/** Methods that do no more than buy something. */
const METHODS = ["GET", "POST"];

/**
 * Returns other paid routes of this origin as the seller itself shows them: in its 402, its discovery document, and its
 * OpenAPI.
 */
export async function shownRoutes(
  visit: Visit,
  quoted: Exchange,
  isAllowed: (url: string) => boolean,
): Promise<readonly OtherRoute[]> {
  const found = quoted.answer === null ? [] : inQuote(visit, quoted.answer).filter(({ url }) => isAllowed(url));
  for (const { path, read } of DOCUMENTS) {
    if (found.length > 0 || visit.left() <= KEPT) break;
    const { answer } = await visit.ask({}, { url: new URL(path, visit.resource.url).href, method: "GET", body: null });
    const document = answer?.status === 200 ? parsed(answer) : {};
    found.push(
      ...read(record(document), visit.resource)
        .flatMap((route) => other(visit, path, route))
        .filter(({ url }) => isAllowed(url)),
    );
  }
  return distinct(found).slice(0, MOST_ROUTES);
}

/** Removes duplicates, because a manifest lists a resource once per scheme. */
const distinct = (routes: readonly OtherRoute[]): readonly OtherRoute[] =>
  [...new Map(routes.toReversed().map((route) => [`${route.method} ${route.url}`, route])).values()].toReversed();

interface Named {
  readonly url: unknown;
  readonly method: unknown;
}

const DOCUMENTS = [
  { path: "/.well-known/x402", read: inManifest },
  { path: "/openapi.json", read: inOpenApi },
] as const;

/** Entries of version 1 name their resource. */
function inQuote(visit: Visit, answer: Answer): OtherRoute[] {
  const { method } = visit.resource;
  const entries = readQuotes(answer).flatMap(({ accepts }) => accepts);
  return entries.flatMap(({ resource: url }) => other(visit, "its 402", { url, method }));
}

/** Reads a list of URLs, or of objects with one, as in x402's discovery documents. */
function inManifest({ resources, items }: Readonly<Record<string, unknown>>, { method }: Resource): readonly Named[] {
  return list(resources ?? items).map((one) => {
    if (typeof one === "string") return { url: one, method };
    const { resource, url = resource, method: its = method } = record(one);
    return { url: typeof url === "string" ? url : record(url).url, method: its };
  });
}

/** Reads operations that may return 402. Paths with parameters are skipped, because their values are unknown. */
function inOpenApi({ paths }: Readonly<Record<string, unknown>>): readonly Named[] {
  return Object.entries(record(paths)).flatMap(([url, operations]) =>
    Object.entries(record(operations))
      .filter(([, operation]) => record(record(operation).responses)["402"] !== undefined)
      .map(([method]) => ({ url, method })),
  );
}

/** Returns the route, if it is another one of this origin. */
function other({ resource }: Visit, shownBy: string, { url, method }: Named): readonly OtherRoute[] {
  const [known, wanted] = [new URL(resource.url), String(method).toUpperCase()];
  if (typeof url !== "string" || url.length > MOST_URL || /[{}]|\/:/.test(url.replace("://", ""))) return [];
  if (!URL.canParse(url, known.origin) || !METHODS.includes(wanted)) return [];
  const route = new URL(url, known.origin);
  if (route.origin !== known.origin || route.pathname === known.pathname) return [];
  const body = wanted === "GET" ? null : (resource.body ?? "{}");
  return [{ url: route.href, method: wanted, body, shownBy }];
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value.slice(0, 200) : []);

function parsed({ body }: Answer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body)) as unknown;
  } catch {
    return {};
  }
}

const MOST_URL = 2_048;

/**
 * Parses another route of the resource's origin, as an order names it: a URL, or a path. It is requested in the same
 * way as the resource.
 * @returns the end of a sentence with the reason if it is invalid
 */
export function namedRoute(text: string, { url, method, body }: Resource): OtherRoute | string {
  const known = new URL(url);
  if (text.length > MOST_URL) return `is longer than ${MOST_URL} characters`;
  if (!/^(https?:\/\/|\/)/i.test(text) || !URL.canParse(text, known.origin))
    return `is ${JSON.stringify(text)}; expected a path, or an http or https URL`;
  const route = new URL(text, known.origin);
  if (route.origin !== known.origin) return `is at ${route.origin}; expected another URL of ${known.origin}`;
  if (route.username !== "" || route.password !== "") return "has credentials in it";
  if (comparable(route) === comparable(known)) return "is the path of the request itself; expected another one";
  route.hash = "";
  return { url: route.href, method, body };
}

/** Servers treat paths as the same if they differ only in case, escapes, slashes, or parameters. */
function comparable({ pathname }: URL): string {
  const plain = unescaped(pathname).toLowerCase();
  return plain
    .replace(/;[^/]*/g, "")
    .replace(/[/\\]+/g, "/")
    .replace(/\/$/, "");
}

function unescaped(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
