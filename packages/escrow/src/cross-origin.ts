const EXPOSED = [
  ...["PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "X-Idempotent-Replay", "Retry-After"],
  ...["X-Escrow-Payment", "X-Escrow-Decision", "X-Escrow-Contest", "X-Escrow-Delivery"],
].join(", ");

const READABLE = [
  ["access-control-allow-origin", "*"],
  ["access-control-expose-headers", EXPOSED],
] as const;

/** The longest list of headers that a preflight may request. */
const MOST_CHARACTERS = 1_000;

/**
 * Answers a CORS preflight, by which a browser checks whether a page of another origin may send a request. It may,
 * with the headers it requests. A payment is in a header, never in a cookie.
 * @returns null for any other request
 */
export function preflight(method: string, header: (name: string) => string | null | undefined): Response | null {
  const asked = header("access-control-request-method");
  if (method !== "OPTIONS" || asked === null || asked === undefined) return null;
  const headers = new Headers({
    "access-control-allow-origin": "*",
    "access-control-allow-methods": /^[A-Z]{1,20}$/.test(asked) ? asked : "GET, POST",
    "access-control-max-age": "86400",
    vary: "Access-Control-Request-Method, Access-Control-Request-Headers",
  });
  if (header("access-control-request-private-network") === "true")
    headers.set("access-control-allow-private-network", "true");
  const names = header("access-control-request-headers") ?? "";
  if (names !== "" && names.length <= MOST_CHARACTERS) headers.set("access-control-allow-headers", names);
  return new Response(null, { status: 204, headers });
}

/** Lets pages of other origins read the response, unless the merchant's own server sets its own rules. */
export function readable(answer: Response): Response {
  if (answer.headers.has("access-control-allow-origin")) return answer;
  // A copy, because the merchant's response may be immutable.
  const copy = new Response(answer.body, answer);
  for (const [name, value] of READABLE) copy.headers.set(name, value);
  return copy;
}
