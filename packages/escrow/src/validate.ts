import { MAX_BODY_BYTES } from "./delivery.ts";

/**
 * The result of checking a request's input: null or undefined if it can be served; otherwise a response with a status
 * from 400 to 499, or a text for a 422.
 */
export type Validated = Response | string | null | undefined;

/** Checks a request's input before anything is held for it. */
export type Validate<Request> = (request: Request) => Validated | Promise<Validated>;

/**
 * Returns the response for refused input; null if it was not refused.
 * @throws TypeError for a response with another status, because it would give something away without payment
 */
export function refusalOf(validated: Validated): Response | null {
  if (validated === null || validated === undefined) return null;
  if (typeof validated === "string") return Response.json({ error: validated }, { status: 422 });
  if (validated.status >= 400 && validated.status <= 499) return validated;
  throw new TypeError(`validate returned ${validated.status}, expected a status from 400 to 499 for a refusal.`);
}

/** Refunds for these statuses do not count in the merchant's record. */
const OF_INPUT = new Set([400, 422]);

/**
 * Returns a refusal as the delivery of a payment that is held anyway. To the arbiter, another status or a body that is
 * too large to deliver would be the merchant's fault.
 */
export async function asDelivery(refusal: Response): Promise<Response> {
  const body = await refusal.arrayBuffer().catch(() => null);
  if (body === null || body.byteLength === 0 || body.byteLength > MAX_BODY_BYTES)
    return Response.json({ error: "This input is refused." }, { status: 422 });
  return new Response(body, { status: OF_INPUT.has(refusal.status) ? refusal.status : 422, headers: refusal.headers });
}
