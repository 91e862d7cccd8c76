import { joined } from "./bytes.ts";

/** Request headers that turn a response into a part of the goods, or into none (RFC 9110, sections 13 and 14). */
const CONDITIONS = [
  ...["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"],
  ...["if-range", "range"],
] as const;

/** The largest body of a paid request that the middleware reads itself, in bytes. */
export const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

/**
 * The part of a larger body that is read anyway: cutting the connection while the client still sends would lose the
 * refusal.
 */
export const MAX_READ_BYTES = 2 * MAX_REQUEST_BYTES;

/** Returns the response to a body that is too large. */
export const requestTooLarge = (): Response =>
  Response.json(
    {
      error: `The request's body is larger than ${MAX_REQUEST_BYTES} bytes, the maximum. Nothing was held.`,
    },
    { status: 413 },
  );

/**
 * Reads a request to its end, and returns it as its handler gets it, or a refusal if it is too large.
 * @throws if the buyer hangs up before that
 */
export async function received<R extends Request>(
  request: R,
): Promise<{ readonly request: R } | { readonly refusal: Response }> {
  if (request.bodyUsed || request.body === null) return { request: wholeRequest(request) };
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.length;
    if (size <= MAX_REQUEST_BYTES) chunks.push(chunk);
    if (size > MAX_READ_BYTES) break;
  }
  if (size > MAX_REQUEST_BYTES) return { refusal: requestTooLarge() };
  return { request: wholeRequest(request, joined(chunks)) };
}

/**
 * Returns a copy of the request without its conditions, detached from the buyer's connection. If a handler heeded an
 * abort, or a condition like `If-None-Match: *`, its buyer could make it fail, or deliver a 304 without a body, again
 * and again: refunded in full, and counted against the merchant.
 */
export function wholeRequest<R extends Request>(request: R, body?: Uint8Array<ArrayBuffer>): R {
  const headers = new Headers(request.headers);
  for (const name of CONDITIONS) headers.delete(name);
  const Same = request.constructor as new (input: string | R, init: RequestInit) => R;
  const init = { method: request.method, headers, signal: null, ...(body === undefined ? {} : { body }) };
  try {
    return new Same(request, init);
  } catch {
    // Its body was read earlier, or it is a proxy, as Next passes to its routes, which Node does not accept as a
    // request.
    const copy = new Same(request.url, init);
    const { nextUrl } = request as { readonly nextUrl?: unknown };
    return nextUrl === undefined ? copy : Object.defineProperty(copy, "nextUrl", { value: nextUrl });
  }
}

/** Removes the same headers from a Node request. */
export function dropConditions(headers: Record<string, unknown>): void {
  for (const name of CONDITIONS) delete headers[name];
}
