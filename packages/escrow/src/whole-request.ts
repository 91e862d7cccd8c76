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
  if (!CONDITIONS.some((name) => request.headers.has(name))) return request;
  const headers = new Headers(request.headers);
  for (const name of CONDITIONS) headers.delete(name);
  const Same = request.constructor as new (input: string | R, init: RequestInit) => R;
  // What has read the body has kept it.
  return request.bodyUsed ? new Same(request.url, { method: request.method, headers }) : new Same(request, { headers });
}

/** The same for the headers of a request of Node. */
export function dropConditions(headers: Record<string, unknown>): void {
  for (const name of CONDITIONS) delete headers[name];
}
