/**
 * The headers of a response that its handlers have set, as opposed to those that were hung on it before: these belong to one
 * request, and not to a delivery, which is replayed. Whatever describes the body belongs to it.
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
 * An answer with the headers that were hung on its response before; where both have one, the answer's counts. What the
 * merchant's own server allows pages of other origins (CORS) replaces what the answer does.
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
