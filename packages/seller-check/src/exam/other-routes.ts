import type { Answer, Exchange } from "./exchange.ts";
import { readQuotes, record } from "./terms.ts";
import type { Resource, Visit } from "./visit.ts";

/** Another request of the same seller that may be for sale too. */
export interface OtherRoute extends Pick<Resource, "url" | "method" | "body"> {
  /** What of the seller's shows it; absent where the order names it. */
  readonly shownBy?: string;
}

/** A payment is presented at one of them, and so many are asked for their quotes. */
const MOST_ROUTES = 2;
/** Requests that the rest of an exam may need. */
const KEPT = 12;
/** A payment is presented where that can do no more than buy something. */
const METHODS = ["GET", "POST"];

/** Other paid routes of this origin as the seller itself shows them: in its 402, its discovery document, its OpenAPI. */
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

/** A manifest lists a resource once for each scheme that pays for it. */
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

/** The entries of version 1 name what they are for. */
function inQuote(visit: Visit, answer: Answer): OtherRoute[] {
  const { method } = visit.resource;
  const entries = readQuotes(answer).flatMap(({ accepts }) => accepts);
  return entries.flatMap(({ resource: url }) => other(visit, "its 402", { url, method }));
}

/** A list of URLs, or of objects that have one, as x402's discovery documents are. */
function inManifest({ resources, items }: Readonly<Record<string, unknown>>, { method }: Resource): readonly Named[] {
  return list(resources ?? items).map((one) => {
    if (typeof one === "string") return { url: one, method };
    const { resource, url = resource, method: its = method } = record(one);
    return { url: typeof url === "string" ? url : record(url).url, method: its };
  });
}

/** Operations that may answer 402. One whose path has a parameter is left out: what would fit is not known. */
function inOpenApi({ paths }: Readonly<Record<string, unknown>>): readonly Named[] {
  return Object.entries(record(paths)).flatMap(([url, operations]) =>
    Object.entries(record(operations))
      .filter(([, operation]) => record(record(operation).responses)["402"] !== undefined)
      .map(([method]) => ({ url, method })),
  );
}

/** The route, if it is another one of this origin. */
function other({ resource }: Visit, shownBy: string, { url, method }: Named): readonly OtherRoute[] {
  const [known, wanted] = [new URL(resource.url), String(method).toUpperCase()];
  if (typeof url !== "string" || url.length > 2_048 || /[{}]|\/:/.test(url.replace("://", ""))) return [];
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
