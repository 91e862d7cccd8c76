import type { FieldError } from "./schema.ts";

/** Every error code of the service, with its HTTP status and title. Documented to clients; codes are never reused. */
export const PROBLEMS = {
  malformed_request: { status: 400, title: "Malformed request" },
  malformed_payment: { status: 400, title: "Malformed payment" },
  not_the_merchant: { status: 403, title: "Not signed by the merchant" },
  not_the_payer: { status: 403, title: "Not signed by the payer" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  request_timeout: { status: 408, title: "Request timed out" },
  payment_conflict: { status: 409, title: "Payment belongs to another request" },
  escrow_over: { status: 409, title: "Escrowed payment can no longer be released" },
  contest_conflict: { status: 409, title: "Payment was contested before" },
  contest_over: { status: 409, title: "Contest window is closed" },
  wrong_payer: { status: 409, title: "Session belongs to another wallet" },
  session_held: { status: 409, title: "Session is held by its token" },
  session_over: { status: 410, title: "Session ended" },
  body_too_large: { status: 413, title: "Body too large" },
  unacceptable: { status: 422, title: "Request refused" },
  too_many_requests: { status: 429, title: "Too many requests" },
  payer_gas_spent: { status: 429, title: "Payer's gas is spent" },
  payer_refused: { status: 429, title: "Too many failed payments" },
  headers_too_large: { status: 431, title: "Headers too large" },
  evidence_removed: { status: 451, title: "Evidence removed" },
  internal_error: { status: 500, title: "Internal error" },
  not_available: { status: 503, title: "Temporarily unavailable" },
  payment_pending: { status: 503, title: "Payment not settled yet" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

export interface ProblemDetails {
  readonly detail: string;
  readonly errors?: readonly FieldError[];
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A caller's mistake or a temporary failure of ours. Routes throw it, and it is rendered in one place, as RFC 9457
 * problem details.
 */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly details: ProblemDetails;

  constructor(code: ProblemCode, details: ProblemDetails) {
    super(`${code}: ${details.detail}`);
    this.code = code;
    this.details = details;
  }
}

/**
 * Returns the problem for any error.
 * @param isAway whether an error means that a dependency is currently unreachable
 */
export const problemOf = (error: unknown, isAway: (error: unknown) => boolean): Problem =>
  error instanceof Problem ? error : isAway(error) ? UNREACHABLE : UNEXPECTED;

const UNREACHABLE = new Problem("not_available", {
  detail:
    "A part of the service cannot be reached at the moment. Send the same request again. No payment is charged twice.",
  headers: { "retry-after": "2" },
});
const UNEXPECTED = new Problem("internal_error", {
  detail: "Something went wrong on our side. If the request was paid, send it again unchanged. Nothing is lost.",
});

/** The path that explains a code, relative to the service's root: the `type` of its problems. */
const problemPath = (code: ProblemCode): string => `/docs#${code}`;

/** Returns the body of an `application/problem+json` answer. */
export function problemBody(code: ProblemCode, { detail, errors, headers }: ProblemDetails, requestId: string) {
  const { status, title } = PROBLEMS[code];
  const after = Number(headers?.["retry-after"]);
  const wait = after > 0 ? { after } : {};
  return {
    type: problemPath(code),
    title,
    status,
    detail,
    code,
    request_id: requestId,
    ...(errors ? { errors } : {}),
    // The same request gets its answer later, signed or not.
    ...(status === 503 && { diagnostic: { code, retry: "same" as const, ...wait } }),
  };
}

const EXPOSED_HEADERS = [
  "PAYMENT-REQUIRED",
  "PAYMENT-RESPONSE",
  "X-PAYMENT-RESPONSE",
  "X-Idempotent-Replay",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
  "Content-Location",
  "Link",
  "ETag",
  "X-Request-Id",
];

/** The headers of every answer. A page of any origin may read all of it, because no answer depends on cookies. */
export const EVERY_ANSWER = [
  ["access-control-allow-origin", "*"],
  ["access-control-expose-headers", EXPOSED_HEADERS.join(", ")],
  ["x-content-type-options", "nosniff"],
] as const;
