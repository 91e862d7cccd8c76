/** What makes an answer a part of what is sold, or nothing of it (RFC 9110, sections 13 and 14). */
const CONDITIONS = [
  ...["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"],
  ...["if-range", "range"],
] as const;

/**
 * The request without its conditions, as handlers get it. With one like `If-None-Match: *` a buyer could have a 304 without a
 * body delivered, again and again: refunded in full, and counted against the merchant.
 */
export function wholeRequest<R extends Request>(request: R): R {
  const { headers } = request;
  const conditions = CONDITIONS.filter((name) => headers.has(name));
  try {
    // In place where that is allowed: Next hands its routes a proxy, which Node takes for no request when it is copied.
    for (const name of conditions) headers.delete(name);
    return request;
  } catch {
    return copyWithout(request, conditions);
  }
}

/** Where headers cannot be changed, as in Deno and in Cloudflare's workers. */
function copyWithout<R extends Request>(request: R, conditions: readonly string[]): R {
  const headers = new Headers(request.headers);
  for (const name of conditions) headers.delete(name);
  const Same = request.constructor as new (input: string | R, init: RequestInit) => R;
  // What has read the body has kept it.
  return request.bodyUsed ? new Same(request.url, { method: request.method, headers }) : new Same(request, { headers });
}

/** The same for the headers of a request of Node. */
export function dropConditions(headers: Record<string, unknown>): void {
  for (const name of CONDITIONS) delete headers[name];
}
