import type { OtherRoute } from "./other-routes.ts";
import type { Resource } from "./visit.ts";

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
