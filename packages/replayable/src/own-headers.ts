/**
 * Returns the headers of a response that its handlers set. Headers that were added before belong to one request rather
 * than to a delivery, which is replayed. Headers that describe the body always belong to it.
 */
export function ownHeaders(before: Headers, after: Headers): Headers {
  const own = new Headers();
  for (const [name, value] of after) {
    const isOwn = name.startsWith("content-") || before.get(name) !== value;
    if (isOwn && name !== "set-cookie") own.append(name, value);
  }
  const earlier = new Set(before.getSetCookie());
  for (const cookie of after.getSetCookie()) if (!earlier.has(cookie)) own.append("set-cookie", cookie);
  return own;
}

/**
 * Returns a response with the headers that were added before; if both have one, the response's own counts. The
 * merchant's own CORS headers replace the response's.
 */
export function withHeaders(before: Headers, answer: Response): Response {
  const headers = new Headers(answer.headers);
  if (before.has("access-control-allow-origin"))
    for (const name of [...headers.keys()]) if (name.startsWith("access-control-")) headers.delete(name);
  for (const [name, value] of before) {
    if (name === "set-cookie") headers.append(name, value);
    else if (!headers.has(name)) headers.set(name, value);
  }
  return new Response(answer.body, { status: answer.status, headers });
}
